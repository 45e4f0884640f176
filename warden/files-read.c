/* READ: a file's bytes. Only of regular files: opening a FIFO or a device does something to whoever else has it. */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "files-operations.h"
#include "files-paths.h"

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

void files_read(struct files *files, const struct request *request)
{
  struct stat stat;
  int fd = open_file(files, request->path, &stat);
  if (fd < 0) return;
  reply_entry(files, &(struct told){ .stat = &stat });
  uint64_t left = request->length, sent = 0;
  bool sought = request->offset == 0 || lseek(fd, (off_t)request->offset, SEEK_SET) >= 0;
  ssize_t got = sought ? 1 : -1;
  while (left && got > 0 && !files->over) {
    got = send_piece(files, fd, left);
    if (got > 0) sent += (uint64_t)got, left -= (uint64_t)got;
  }
  if (got < 0) reply_error(files, sought ? "read" : "seek in", request->path);
  else reply_done(files, sent);
  close(fd);
}
