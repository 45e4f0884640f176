/* WRITE: content into a file, in its place or at its end; at once or as it comes. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "files-bytes.h"
#include "files-draft.h"
#include "files-duct.h"
#include "files-operations.h"
#include "files-paths.h"

enum { MODE_NOT_GIVEN_FILE = 0644 };

struct writing {
  const struct request *request;
  bool atomic, exclusive, append;
  int fd;
  const char *unfit; /* why what is there cannot be written to */
  struct draft draft;
  mode_t mode;       /* of a file that is made */
  struct duct duct;  /* what comes in bulk goes through it */
  bool tried;        /* to open it */
};

static bool is_given(const struct request *request)
{
  return request->number != UINT32_MAX;
}

static int open_checked(struct writing *writing, const char *path, int flags)
{
  struct stat stat;
  bool is_there = fstatat(AT_FDCWD, path, &stat, 0) == 0;
  if (is_there && (writing->unfit = paths_unfit(stat.st_mode))) return -1;
  int fd = open(path, flags | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, writing->mode & 0777);
  if (fd < 0) return -1;
  if (fstat(fd, &stat) == 0 && !(writing->unfit = paths_unfit(stat.st_mode))) return fd;
  close(fd);
  return -1;
}

static bool open_in_place(struct writing *writing)
{
  const char *path = writing->request->path;
  int flags = O_WRONLY | O_CREAT | (writing->exclusive ? O_EXCL : 0) | (writing->append ? O_APPEND : 0);
  writing->fd = open_checked(writing, path, flags);
  if (writing->fd < 0 && errno == ENOENT && paths_make_above(path)) writing->fd = open_checked(writing, path, flags);
  if (writing->fd < 0) return false;
  return writing->append || ftruncate(writing->fd, 0) == 0;
}

static bool copy_old(struct writing *writing, const char *path)
{
  int old = open_checked(writing, path, O_RDONLY);
  if (old < 0) return false;
  bool copied = copy_bytes(old, writing->fd);
  int error = errno;
  close(old);
  errno = error;
  return copied;
}

/* What is there must be writable as without a draft, and the new file takes after it. */
static bool take_after(struct writing *writing, const char *path)
{
  struct stat stat;
  int old = open_checked(writing, path, O_WRONLY);
  if (old < 0) return errno == ENOENT && !writing->unfit;
  bool known = fstat(old, &stat) == 0;
  close(old);
  if (!known) return false;
  if (writing->exclusive) {
    errno = EEXIST;
    return false;
  }
  if (stat.st_uid != geteuid() || stat.st_gid != getegid()) {
    int ignored = fchown(writing->fd, stat.st_uid, stat.st_gid);
    (void)ignored;
  }
  writing->mode = stat.st_mode & 0777;
  return !writing->append || copy_old(writing, path);
}

static bool open_draft(struct writing *writing)
{
  char landing[FILES_PATH_MOST + 1];
  if (!paths_follow(writing->request->path, landing)) return false;
  bool opened = draft_open(&writing->draft, landing);
  if (!opened && errno == ENOENT && paths_make_above(landing)) opened = draft_open(&writing->draft, landing);
  if (!opened) return false;
  writing->fd = writing->draft.fd;
  return take_after(writing, landing);
}

/* Moves what has come of the content into the file, through the duct: whoever feeds us must not wait for the file, and would while pages leave its pipe. */
static bool pour(struct files *files, struct duct *duct, int fd)
{
  ssize_t left = files_move_content(files, duct->in), moved = 1;
  for (; left > 0 && moved > 0; left -= moved) {
    do moved = splice(duct->out, NULL, fd, NULL, (size_t)left, SPLICE_F_MOVE);
    while (moved < 0 && errno == EINTR);
    if (moved <= 0) break;
  }
  if (left == 0) return true;
  bool copied = left < 0 || copy_some(duct->out, fd, (size_t)left);
  duct_close(duct);
  return copied;
}

/* The kernel splices into no file that is only appended to. */
static void try_duct(struct writing *writing)
{
  if (!writing->tried && (writing->atomic || !writing->append)) duct_open(&writing->duct, 0);
  writing->tried = true;
}

static bool take_content(struct files *files, struct writing *writing, uint64_t *bytes)
{
  struct frame_in piece;
  bool written = true;
  for (size_t left; written && (left = files_content_left(files)); *bytes += left - files->content) {
    if (files_content_is_bulk(files)) try_duct(writing);
    if (files_content_is_bulk(files) && writing->duct.room) written = pour(files, &writing->duct, writing->fd);
    else written = files_take_content(files, &piece) && write_bytes(writing->fd, piece.payload, piece.length);
  }
  duct_close(&writing->duct);
  return written;
}

/* Bits that writing takes away can only be set after it. */
static bool finish(struct writing *writing)
{
  bool given = is_given(writing->request);
  if ((given || writing->atomic) && fchmod(writing->fd, given ? writing->request->number : writing->mode) < 0) return false;
  if (writing->atomic) return draft_place(&writing->draft, writing->exclusive);
  int fd = writing->fd;
  writing->fd = -1;
  return close(fd) == 0;
}

static void abandon(struct writing *writing)
{
  int error = errno;
  if (writing->atomic) draft_drop(&writing->draft);
  else if (writing->fd >= 0) close(writing->fd);
  errno = error;
}

void files_write(struct files *files, const struct request *request)
{
  struct writing writing = {
    .request = request,
    .atomic = request->flags & WRITE_ATOMIC,
    .exclusive = request->flags & WRITE_EXCLUSIVE,
    .append = request->flags & WRITE_APPEND,
    .fd = -1,
    .draft = { .fd = -1, .folder = -1 },
    .mode = is_given(request) ? request->number : MODE_NOT_GIVEN_FILE,
  };
  uint64_t bytes = 0;
  const char *verb = "open";
  bool opened = writing.atomic ? open_draft(&writing) : open_in_place(&writing);
  bool written = opened && take_content(files, &writing, &bytes);
  if (opened) verb = "write";
  if (files->over) return abandon(&writing);
  if (written && finish(&writing)) {
    struct stat stat;
    if (fstatat(AT_FDCWD, request->path, &stat, 0) < 0) return reply_error(files, "stat", request->path);
    reply_entry(files, &(struct told){ .stat = &stat });
    return reply_done(files, bytes);
  }
  abandon(&writing);
  reply_error(files, writing.unfit ? writing.unfit : verb, request->path);
  if (!written) files_skip_content(files);
}
