/*
 * READ: a file's bytes. Only of regular files: opening a FIFO or a device does something to whoever else has it.
 *
 * What is large is not copied on its way: its pages move into one pipe, where their number shows how long the DATA is, then behind its header into a second,
 * so that both leave together, and from there to the output. Where that cannot be done – a profile refuses it, a file system does not know it – it is read.
 */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "files-operations.h"
#include "files-paths.h"

enum { PAGE = 4096, PASSAGE_ROOM = 64 * PAGE };

struct passage {
  int content[2], frame[2];
  size_t most; /* of one piece; 0: there is no passage */
  uint64_t at; /* in the file */
};

/* As wide as the kernel grants it; 0 when that is not worth it. */
static size_t widen(int pipe)
{
  int room = fcntl(pipe, F_SETPIPE_SZ, PASSAGE_ROOM);
  if (room < 0) room = fcntl(pipe, F_GETPIPE_SZ);
  return room >= PASSAGE_ROOM / 4 ? (size_t)room : 0;
}

static void close_both(const int ends[2])
{
  close(ends[0]);
  close(ends[1]);
}

static void open_passage(struct passage *passage)
{
  if (pipe2(passage->content, O_CLOEXEC | O_NONBLOCK) < 0) return;
  if (pipe2(passage->frame, O_CLOEXEC | O_NONBLOCK) < 0) return close_both(passage->content);
  size_t content = widen(passage->content[1]), frame = widen(passage->frame[1]);
  /* The header takes a page of its own. */
  if (content && frame) passage->most = (content < frame ? content : frame) - PAGE;
  else close_both(passage->content), close_both(passage->frame);
}

static void close_passage(struct passage *passage)
{
  if (!passage->most) return;
  close_both(passage->content);
  close_both(passage->frame);
  passage->most = 0;
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
  size_t fitting = passage->most - passage->at % PAGE;
  ssize_t got;
  do got = splice(fd, NULL, passage->content[1], NULL, most < fitting ? most : fitting, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
  while (got < 0 && errno == EINTR);
  if (got > 0) {
    passage->at += (uint64_t)got;
    if (!reply_passed(files, &(struct passed){ .content = passage->content[0], .into = passage->frame[1], .out_of = passage->frame[0], .length = (size_t)got }))
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
  return request->length >= PASSAGE_ROOM && size >= PASSAGE_ROOM && request->offset <= size - PASSAGE_ROOM;
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
