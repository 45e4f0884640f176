#include "files-draft.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "files-bytes.h"
#include "files-paths.h"

static int make_named(struct draft *draft)
{
  paths_invent(draft->name, sizeof draft->name);
  int fd = openat(draft->folder, draft->name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (fd < 0) draft->name[0] = 0;
  return fd;
}

bool draft_open(struct draft *draft, const char *path)
{
  char folder[FILES_PATH_MOST + 1];
  *draft = (struct draft){ .fd = -1, .folder = -1 };
  if (!paths_split(path, folder, draft->final)) return false;
  draft->folder = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (draft->folder < 0) return false;
  draft->fd = openat(draft->folder, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (draft->fd < 0 && (errno == EOPNOTSUPP || errno == EISDIR || errno == ENOENT || errno == EINVAL)) draft->fd = make_named(draft);
  if (draft->fd >= 0) return true;
  draft_drop(draft);
  return false;
}

static bool give_name(struct draft *draft, const char *name)
{
  char self[64];
  snprintf(self, sizeof self, "/proc/self/fd/%d", draft->fd);
  return linkat(AT_FDCWD, self, draft->folder, name, AT_SYMLINK_FOLLOW) == 0;
}

/* Where /proc is missing or the file rules forbid the link, a copy gets the name. */
static bool copy_named(struct draft *draft)
{
  struct stat stat;
  int fd = make_named(draft);
  if (fd < 0) return false;
  bool copied = fstat(draft->fd, &stat) == 0 && lseek(draft->fd, 0, SEEK_SET) == 0 && copy_bytes(draft->fd, fd) && fchmod(fd, stat.st_mode & 07777) == 0;
  int error = errno;
  close(draft->fd);
  draft->fd = fd;
  errno = error;
  return copied;
}

static bool name_draft(struct draft *draft)
{
  char name[sizeof draft->name];
  paths_invent(name, sizeof name);
  if (!give_name(draft, name)) return copy_named(draft);
  strcpy(draft->name, name);
  return true;
}

static bool place(struct draft *draft, bool exclusive)
{
  if (!draft->name[0] && exclusive) {
    if (give_name(draft, draft->final)) return true;
    if (errno == EEXIST) return false;
  }
  if (!draft->name[0] && !name_draft(draft)) return false;
  if (exclusive) return linkat(draft->folder, draft->name, draft->folder, draft->final, 0) == 0;
  if (renameat(draft->folder, draft->name, draft->folder, draft->final) < 0) return false;
  draft->name[0] = 0;
  return true;
}

bool draft_place(struct draft *draft, bool exclusive)
{
  bool placed = place(draft, exclusive);
  int error = errno;
  draft_drop(draft);
  errno = error;
  return placed;
}

void draft_drop(struct draft *draft)
{
  int error = errno;
  if (draft->name[0]) unlinkat(draft->folder, draft->name, 0);
  if (draft->fd >= 0) close(draft->fd);
  if (draft->folder >= 0) close(draft->folder);
  draft->fd = draft->folder = -1;
  draft->name[0] = 0;
  errno = error;
}
