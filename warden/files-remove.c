/* REMOVE, and what else has to remove. */
#include "files-remove.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "files-operations.h"
#include "files-paths.h"
#include "files-walk.h"

static void note(struct remains *remains, const struct walk_entry *entry)
{
  int error = errno;
  snprintf(remains->where, sizeof remains->where, "%s", entry->path);
  errno = error;
}

static bool step_removed(struct walk *walk, enum walk_step step, const struct walk_entry *entry)
{
  if (step == WALK_ENTRY && S_ISDIR(entry->stat.st_mode)) return walk_enter(walk);
  if (step == WALK_ENTRY) return unlinkat(entry->folder, entry->name, 0) == 0 || errno == ENOENT;
  if (step == WALK_LEFT) return unlinkat(entry->folder, entry->name, AT_REMOVEDIR) == 0 || errno == ENOENT;
  return false;
}

/* Everything in the folder open at `fd` (which is taken), not itself. */
static bool remove_within(int fd, struct remains *remains)
{
  struct walk walk;
  struct walk_entry entry = { .path = "" };
  enum walk_step step = WALK_FAILED;
  bool going = walk_begin(&walk, fd);
  while (going) {
    step = walk_next(&walk, &entry);
    if (step == WALK_OVER) break;
    going = step_removed(&walk, step, &entry);
  }
  if (!going) note(remains, &entry);
  int error = errno;
  walk_end(&walk);
  errno = error;
  return going;
}

bool remove_tree(int folder, const char *name, struct remains *remains)
{
  remains->where[0] = 0;
  struct stat stat;
  if (fstatat(folder, name, &stat, AT_SYMLINK_NOFOLLOW) < 0) return false;
  if (!S_ISDIR(stat.st_mode)) return unlinkat(folder, name, 0) == 0;
  if (unlinkat(folder, name, AT_REMOVEDIR) == 0) return true;
  if (errno != ENOTEMPTY && errno != EEXIST) return false;
  int fd = openat(folder, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  return fd >= 0 && remove_within(fd, remains) && unlinkat(folder, name, AT_REMOVEDIR) == 0;
}

static bool remove_one(const char *path)
{
  struct stat stat;
  return fstatat(AT_FDCWD, path, &stat, AT_SYMLINK_NOFOLLOW) == 0 && unlinkat(AT_FDCWD, path, S_ISDIR(stat.st_mode) ? AT_REMOVEDIR : 0) == 0;
}

/* A folder of which the cell was made. */
static bool is_mounted(const char *path)
{
  struct statx statx_of;
  if (statx(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT, STATX_TYPE, &statx_of) < 0) return false;
  return statx_of.stx_attributes & statx_of.stx_attributes_mask & STATX_ATTR_MOUNT_ROOT;
}

void files_remove(struct files *files, const struct request *request)
{
  char folder[FILES_PATH_MOST + 1], name[FILES_PATH_MOST + 1], object[2 * FILES_ERROR_OBJECT_MOST];
  struct remains remains = { "" };
  bool removed = false;
  if (!paths_split(request->path, folder, name)) return reply_error(files, "remove", request->path);
  if (request->flags & REMOVE_RECURSIVE) {
    int fd = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
    removed = fd >= 0 && remove_tree(fd, name, &remains);
    int error = errno;
    if (fd >= 0) close(fd);
    errno = error;
  } else {
    removed = remove_one(request->path);
  }
  if (removed) return reply_done(files, 1);
  if (!remains.where[0] && (errno == ENOENT || errno == ENOTDIR)) return reply_done(files, 0);
  int error = errno;
  bool is_held = !remains.where[0] && (error == EROFS || error == EBUSY || error == EACCES) && is_mounted(request->path);
  errno = is_held ? EBUSY : error;
  if (is_held) return reply_error(files, "is mounted:", request->path);
  snprintf(object, sizeof object, "%s%s%s", request->path, remains.where[0] ? "/" : "", remains.where);
  reply_error(files, "remove", object);
}
