/*
 * READ: a file's bytes. Only of regular files: opening a FIFO or a device does something to whoever else has it.
 *
 * What is large is not copied on its way: its pages move into one pipe, where their number shows how long the DATA is, then behind its header into a second,
 * so that both leave together, and from there to the output. Where that cannot be done – a profile refuses it, a file system does not know it – it is read.
 */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "files-duct.h"
#include "files-operations.h"
#include "files-paths.h"

struct passage {
  struct duct content, frame;
  size_t most; /* of one piece; 0: there is no passage */
  uint64_t at; /* in the file */
};

static void close_passage(struct passage *passage)
{
  duct_close(&passage->content);
  duct_close(&passage->frame);
  passage->most = 0;
}

static void open_passage(struct passage *passage)
{
  duct_open(&passage->content, O_NONBLOCK);
  duct_open(&passage->frame, O_NONBLOCK);
  size_t content = passage->content.room, frame = passage->frame.room;
  /* The header takes a page of its own. */
  if (content && frame) passage->most = (content < frame ? content : frame) - DUCT_PAGE;
  else close_passage(passage);
}

static int open_file(struct files *files, const char *path, struct stat *stat)
{
  /* Looked at before it is opened so that nothing but a file is opened, and after, because it may have been exchanged meanwhile. */
  const char *unfit = NULL;
  int fd = -1;
  if (fstatat(AT_FDCWD, path, stat, 0) == 0 && !(unfit = paths_unfit(stat->st_mode)))
    fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  if (fd >= 0 && fstat(fd, stat) == 0 && !(unfit = paths_unfit(stat->st_mode))) return fd;
  reply_error(files, unfit ? unfit : "open", path);
  if (fd >= 0) close(fd);
  return -1;
}

/* One DATA of at most `most` bytes; 0 at the end of the file. */
static ssize_t send_piece(struct files *files, int fd, uint64_t most)
{
  reply_begin(files, REPLY_DATA);
  ssize_t got;
  do got = read(fd, reply_room(files), most < FILES_DATA_MOST ? most : FILES_DATA_MOST);
  while (got < 0 && errno == EINTR);
  if (got <= 0) {
    reply_drop(files);
    return got;
  }
  reply_filled(files, (size_t)got);
  reply_end(files);
  return got;
}

/* As send_piece. */
static ssize_t pass_piece(struct files *files, int fd, struct passage *passage, uint64_t most)
{
  /* Up to the end of a page: parts of pages take as much room as whole ones. */
  size_t fitting = passage->most - passage->at % DUCT_PAGE;
  ssize_t got;
  do got = splice(fd, NULL, passage->content.in, NULL, most < fitting ? most : fitting, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
  while (got < 0 && errno == EINTR);
  if (got > 0) {
    passage->at += (uint64_t)got;
    if (!reply_passed(files, &(struct passed){ .content = passage->content.out, .into = passage->frame.in, .out_of = passage->frame.out, .length = (size_t)got }))
      close_passage(passage);
    return got;
  }
  if (got == 0) return 0;
  /* Whatever is wrong with it, reading tells. */
  close_passage(passage);
  return send_piece(files, fd, most);
}

static bool is_large(const struct stat *stat, const struct request *request)
{
  uint64_t size = stat->st_size > 0 ? (uint64_t)stat->st_size : 0;
  return request->length >= DUCT_ROOM && size >= DUCT_ROOM && request->offset <= size - DUCT_ROOM;
}

void files_read(struct files *files, const struct request *request)
{
  struct stat stat;
  int fd = open_file(files, request->path, &stat);
  if (fd < 0) return;
  reply_entry(files, &(struct told){ .stat = &stat });
  uint64_t left = request->length, sent = 0;
  bool sought = request->offset == 0 || lseek(fd, (off_t)request->offset, SEEK_SET) >= 0;
  ssize_t got = sought ? 1 : -1;
  struct passage passage = { .at = request->offset };
  if (sought && is_large(&stat, request)) open_passage(&passage);
  while (left && got > 0 && !files->over) {
    got = passage.most ? pass_piece(files, fd, &passage, left) : send_piece(files, fd, left);
    if (got > 0) sent += (uint64_t)got, left -= (uint64_t)got;
  }
  if (got < 0) reply_error(files, sought ? "read" : "seek in", request->path);
  else reply_done(files, sent);
  close_passage(&passage);
  close(fd);
}
