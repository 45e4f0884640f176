/* MOVE and COPY. What is copied is made under another name and put in its place at the end: a reader sees nothing or all of it. */
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "files-copy.h"
#include "files-draft.h"
#include "files-operations.h"
#include "files-paths.h"
#include "files-remove.h"

struct journey {
  const struct request *request;
  bool exclusive, keep;
  int from, to; /* the folders */
  char from_name[FILES_PATH_MOST + 1], to_name[FILES_PATH_MOST + 1];
  const char *verb;
  char where[FILES_ERROR_OBJECT_MOST + 1]; /* of a failure, below the path it is about */
};

static bool rename_to(int from, const char *from_name, const struct journey *journey)
{
  const char *to_name = journey->to_name;
  struct stat stat;
  if (!journey->exclusive) return renameat(from, from_name, journey->to, to_name) == 0;
  if (renameat2(from, from_name, journey->to, to_name, RENAME_NOREPLACE) == 0) return true;
  if (errno != EINVAL && errno != ENOSYS) return false;
  if (fstatat(journey->to, to_name, &stat, AT_SYMLINK_NOFOLLOW) == 0) {
    errno = EEXIST;
    return false;
  }
  return renameat(from, from_name, journey->to, to_name) == 0;
}

/* Whether the folder open at `fd` is `outer` or lies in it. */
static bool is_within(int fd, const struct stat *outer)
{
  int at = openat(fd, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
  struct stat here, above;
  bool found = false;
  while (at >= 0 && fstat(at, &here) == 0) {
    found = here.st_dev == outer->st_dev && here.st_ino == outer->st_ino;
    int next = found ? -1 : openat(at, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);
    close(at);
    at = next;
    if (at >= 0 && fstat(at, &above) == 0 && above.st_dev == here.st_dev && above.st_ino == here.st_ino) break;
  }
  if (at >= 0) close(at);
  return found;
}

static bool copy_one_file(struct journey *journey)
{
  struct draft draft;
  const struct copy copy = { .from = journey->from, .from_name = journey->from_name, .keep = journey->keep };
  if (!draft_open(&draft, journey->request->other)) return false;
  if (copy_file(&copy, draft.fd)) return draft_place(&draft, journey->exclusive);
  draft_drop(&draft);
  return false;
}

static bool copy_other(struct journey *journey)
{
  char name[64];
  struct copy copy = { .from = journey->from, .to = journey->to, .from_name = journey->from_name, .to_name = name, .keep = journey->keep };
  struct remains remains;
  paths_invent(name, sizeof name);
  if (copy_tree(&copy) && rename_to(journey->to, name, journey)) return true;
  int error = errno;
  strcpy(journey->where, copy.where);
  remove_tree(journey->to, name, &remains);
  errno = error;
  return false;
}

static bool copy_over(struct journey *journey)
{
  struct stat stat, there;
  if (fstatat(journey->from, journey->from_name, &stat, AT_SYMLINK_NOFOLLOW) < 0) return false;
  bool is_there = fstatat(journey->to, journey->to_name, &there, AT_SYMLINK_NOFOLLOW) == 0;
  errno = journey->exclusive ? EEXIST : EINVAL;
  if (is_there && (journey->exclusive || (there.st_dev == stat.st_dev && there.st_ino == stat.st_ino))) return false;
  if (S_ISREG(stat.st_mode)) return copy_one_file(journey);
  errno = EINVAL;
  if (S_ISDIR(stat.st_mode) && is_within(journey->to, &stat)) return false;
  return copy_other(journey);
}

static bool move(struct journey *journey)
{
  if (rename_to(journey->from, journey->from_name, journey)) return true;
  if (errno != EXDEV) return false;
  if (!copy_over(journey)) return false;
  struct remains remains;
  journey->verb = "remove";
  if (remove_tree(journey->from, journey->from_name, &remains)) return true;
  strcpy(journey->where, remains.where);
  return false;
}

static bool open_ends(struct journey *journey)
{
  char folder[FILES_PATH_MOST + 1];
  if (!paths_split(journey->request->path, folder, journey->from_name)) return false;
  journey->from = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (journey->from < 0 || !paths_split(journey->request->other, folder, journey->to_name)) return false;
  journey->to = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (journey->to < 0) journey->verb = "open the folder of";
  return journey->to >= 0;
}

static void travel(struct files *files, const struct request *request, bool (*act)(struct journey *))
{
  bool is_move = request->type == FILES_MOVE;
  struct journey journey = {
    .request = request, .exclusive = request->flags & COPY_EXCLUSIVE, .keep = is_move, .from = -1, .to = -1, .verb = is_move ? "move" : "copy",
  };
  bool opened = open_ends(&journey);
  bool arrived = opened && act(&journey);
  char object[2 * FILES_ERROR_OBJECT_MOST];
  int error = errno;
  if (journey.from >= 0) close(journey.from);
  if (journey.to >= 0) close(journey.to);
  if (arrived) return paths_tell(files, request->other, AT_SYMLINK_NOFOLLOW);
  /* What is in the way is named by where it is; everything else by what was to go there. */
  bool blames_end = (journey.from >= 0 && !opened) || error == EEXIST || error == ENOTEMPTY || error == EISDIR;
  snprintf(object, sizeof object, "%s%s%s", blames_end ? request->other : request->path, journey.where[0] ? "/" : "", journey.where);
  errno = error;
  reply_error(files, blames_end && opened ? (is_move ? "move to" : "copy to") : journey.verb, object);
}

void files_move(struct files *files, const struct request *request)
{
  travel(files, request, move);
}

void files_copy(struct files *files, const struct request *request)
{
  travel(files, request, copy_over);
}
