#include "files-copy.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "files-bytes.h"
#include "files-paths.h"
#include "files-walk.h"

/* One thing of the tree, and where it goes. */
struct pair {
  int from, to;
  const char *from_name, *to_name;
  struct stat stat;
};

static bool close_after(int fd, bool result)
{
  int error = errno;
  close(fd);
  errno = error;
  return result;
}

/* Set-id bits only belong to a file of the same owner. */
static bool take_after(int fd, const struct stat *stat, bool keep)
{
  bool owned = keep && fchown(fd, stat->st_uid, stat->st_gid) == 0;
  if (fchmod(fd, stat->st_mode & (owned ? 07777 : 01777)) < 0) return false;
  struct timespec times[2] = { stat->st_atim, stat->st_mtim };
  return !keep || futimens(fd, times) == 0;
}

bool copy_file(const struct copy *copy, int to)
{
  struct stat stat;
  int from = openat(copy->from, copy->from_name, O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_NOCTTY | O_CLOEXEC);
  if (from < 0) return false;
  bool fit = fstat(from, &stat) == 0 && !paths_unfit(stat.st_mode);
  return close_after(from, fit && copy_bytes(from, to) && take_after(to, &stat, copy->keep));
}

static bool make_file(const struct pair *pair, bool keep)
{
  int to = openat(pair->to, pair->to_name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (to < 0) return false;
  const struct copy copy = { .from = pair->from, .from_name = pair->from_name, .keep = keep };
  bool copied = copy_file(&copy, to);
  if (!copied) return close_after(to, false);
  return close(to) == 0;
}

static bool make_link(const struct pair *pair)
{
  char target[FILES_PATH_MOST + 1];
  return paths_target(pair->from, pair->from_name, target) && symlinkat(target, pair->to, pair->to_name) == 0;
}

/* Failing to keep an owner or a time of what has no content is no failure: it may be another's. */
static void keep_attributes(const struct pair *pair)
{
  struct timespec times[2] = { pair->stat.st_atim, pair->stat.st_mtim };
  int ignored = fchownat(pair->to, pair->to_name, pair->stat.st_uid, pair->stat.st_gid, AT_SYMLINK_NOFOLLOW);
  ignored = utimensat(pair->to, pair->to_name, times, AT_SYMLINK_NOFOLLOW);
  (void)ignored;
}

static bool make(const struct pair *pair, bool keep)
{
  mode_t mode = pair->stat.st_mode;
  if (S_ISREG(mode)) return make_file(pair, keep);
  if (S_ISDIR(mode)) return mkdirat(pair->to, pair->to_name, 0700) == 0;
  bool made = S_ISLNK(mode) ? make_link(pair) : mknodat(pair->to, pair->to_name, mode & (S_IFMT | 0777), pair->stat.st_rdev) == 0;
  if (made && keep) keep_attributes(pair);
  return made;
}

static bool finish_folder(struct trail *to, const struct stat *stat, bool keep)
{
  int own = openat(trail_fd(to), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  return own >= 0 && close_after(own, take_after(own, stat, keep));
}

struct tree {
  struct walk from;
  struct trail to;
  bool keep;
};

static bool copy_step(struct tree *tree, enum walk_step step, const struct walk_entry *entry)
{
  struct pair pair = { .from = entry->folder, .from_name = entry->name, .to = trail_fd(&tree->to), .to_name = entry->name, .stat = entry->stat };
  if (step == WALK_ENTRY) {
    if (!make(&pair, tree->keep)) return false;
    return !S_ISDIR(entry->stat.st_mode) || (walk_enter(&tree->from) && trail_enter(&tree->to, pair.to_name));
  }
  if (step != WALK_LEFT || fstatat(entry->folder, entry->name, &pair.stat, AT_SYMLINK_NOFOLLOW) < 0) return false;
  return finish_folder(&tree->to, &pair.stat, tree->keep) && trail_leave(&tree->to);
}

static bool copy_within(struct copy *copy, struct tree *tree)
{
  struct walk_entry entry = { .path = "" };
  for (;;) {
    enum walk_step step = walk_next(&tree->from, &entry);
    if (step == WALK_OVER) return true;
    if (copy_step(tree, step, &entry)) continue;
    int error = errno;
    snprintf(copy->where, sizeof copy->where, "%s", entry.path);
    errno = error;
    return false;
  }
}

static bool copy_folder(struct copy *copy, const struct stat *stat)
{
  struct tree tree = { .keep = copy->keep };
  int from = openat(copy->from, copy->from_name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  int to = from < 0 ? -1 : openat(copy->to, copy->to_name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (to < 0) return from >= 0 && close_after(from, false);
  bool begun = walk_begin(&tree.from, from);
  int error = errno;
  bool led = trail_begin(&tree.to, to);
  if (!begun) errno = error;
  bool copied = begun && led && copy_within(copy, &tree) && finish_folder(&tree.to, stat, copy->keep);
  error = errno;
  walk_end(&tree.from);
  trail_end(&tree.to);
  errno = error;
  return copied;
}

bool copy_tree(struct copy *copy)
{
  struct pair pair = { .from = copy->from, .from_name = copy->from_name, .to = copy->to, .to_name = copy->to_name };
  copy->where[0] = 0;
  if (fstatat(copy->from, copy->from_name, &pair.stat, AT_SYMLINK_NOFOLLOW) < 0 || !make(&pair, copy->keep)) return false;
  return !S_ISDIR(pair.stat.st_mode) || copy_folder(copy, &pair.stat);
}
