/* LIST: what is in a folder and beneath, in the order of names. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "files-hash.h"
#include "files-operations.h"
#include "files-paths.h"
#include "files-walk.h"

enum { FILES_OPAQUE = 1 };

struct listing {
  struct files *files;
  const struct request *request;
  struct walk walk;
  uint64_t count;
  bool incomplete; /* something could not be looked into */
  char deep[FILES_ERROR_OBJECT_MOST + 1]; /* how the first path begins that is too long to be told; empty without one */
};

/* A folder of a layer that shows nothing of the folder beneath it. */
static bool is_opaque(const struct walk_entry *entry)
{
  char mark = 0;
  int fd = openat(entry->folder, entry->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0) return false;
  ssize_t got = fgetxattr(fd, "user.overlay.opaque", &mark, 1);
  close(fd);
  return got == 1 && mark == 'y';
}

static void tell(struct listing *listing, const struct walk_entry *entry)
{
  char target[FILES_PATH_MOST + 1];
  uint8_t digest[FILES_HASH_LENGTH];
  struct stat hashed;
  struct told told = { .stat = &entry->stat, .name = entry->path, .name_length = entry->path_length };
  if (S_ISLNK(entry->stat.st_mode) && paths_target(entry->folder, entry->name, target)) told.target = target;
  struct stat marked = entry->stat;
  if (listing->request->flags & IN_LAYERS && S_ISDIR(marked.st_mode)) {
    /* Folders have no use for this field. */
    marked.st_rdev = is_opaque(entry) ? FILES_OPAQUE : 0;
    told.stat = &marked;
  }
  if (listing->request->flags & LIST_HASH && S_ISREG(entry->stat.st_mode)) {
    if (hash_file(entry->folder, entry->name, &hashed, digest)) told.hash = digest;
    else listing->incomplete = true;
  }
  reply_entry(listing->files, &told);
  listing->count++;
}

static void descend(struct listing *listing, const struct walk_entry *entry)
{
  const struct request *request = listing->request;
  if (!S_ISDIR(entry->stat.st_mode) || walk_depth(&listing->walk) >= request->number) return;
  if (request->flags & LIST_ONE_FILESYSTEM && entry->stat.st_dev != trail_dev(&listing->walk.trail)) return;
  if (!walk_enter(&listing->walk)) listing->incomplete = true;
}

static void list(struct listing *listing)
{
  struct walk_entry entry;
  struct files *files = listing->files;
  listing->walk.skip_hidden = !(listing->request->flags & LIST_HIDDEN);
  for (;;) {
    enum walk_step step = walk_next(&listing->walk, &entry);
    if (files->over || step == WALK_OVER) break;
    if (step == WALK_FAILED) return reply_error(files, "list", entry.path);
    if (step == WALK_MISSED) listing->incomplete = true;
    if (step != WALK_ENTRY) continue;
    if (entry.path_length > FILES_NAME_MOST) {
      /* Told at the end, so that it hides nothing but what is in it. */
      if (!listing->deep[0]) strncpy(listing->deep, entry.path, FILES_ERROR_OBJECT_MOST);
      continue;
    }
    tell(listing, &entry);
    descend(listing, &entry);
  }
  if (!listing->deep[0]) return reply_done(files, listing->count | (listing->incomplete ? FILES_INCOMPLETE : 0));
  errno = ENAMETOOLONG;
  reply_error(files, "list", listing->deep);
}

void files_list(struct files *files, const struct request *request)
{
  struct listing listing = { .files = files, .request = request };
  int fd = paths_open_folder(files, request);
  if (fd < 0) return reply_error(files, "open", request->path);
  struct stat stat;
  if (request->number == 0) {
    if (fstat(fd, &stat) < 0) reply_error(files, "stat", request->path);
    else reply_entry(files, &(struct told){ .stat = &stat }), reply_done(files, 1);
    close(fd);
    return;
  }
  if (walk_begin(&listing.walk, fd)) list(&listing);
  else reply_error(files, "list", request->path);
  walk_end(&listing.walk);
}
