/*
 * bwrap has bound each source at a private place. Here it is recognised where its path was all that bwrap could be given, made exactly as open as
 * asked for, and moved to where the guest sees it. The way there is walked without following links: a source that another mount is to be
 * placed in may hold whatever an earlier guest wrote.
 */
#include "place.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "die.h"
#include "mount-calls.h"
#include "mount-flags.h"

/* The filesystems that are the cell's own: only there may a missing folder be made. */
struct own {
  dev_t root, disk;
};

/* The one that was open when it was checked, whatever its path led to when it was bound. */
static void recognise(const struct recognition *expected)
{
  struct stat checked, bound;
  if (fstat(expected->fd, &checked) < 0) die("look at the checked source of", expected->path);
  if (lstat(expected->path, &bound) < 0) die("look at", expected->path);
  errno = ESTALE;
  if (checked.st_dev != bound.st_dev || checked.st_ino != bound.st_ino) die("recognise the source of", expected->path);
}

static void make_entry(int above, const char *name, mode_t kind, const struct own *own)
{
  struct stat parent;
  if (fstat(above, &parent) < 0) die("look at the folder of", name);
  errno = EROFS;
  if (parent.st_dev != own->root && parent.st_dev != own->disk) die("make in a folder that is not the cell's:", name);
  if (kind == S_IFDIR ? mkdirat(above, name, 0755) < 0 : mknodat(above, name, S_IFREG | 0644, 0) < 0) die("make", name);
  bool owned = parent.st_uid == geteuid() && parent.st_gid == getegid();
  if (!owned && fchownat(above, name, parent.st_uid, parent.st_gid, AT_SYMLINK_NOFOLLOW) < 0) die("give away", name);
}

static int enter(int above, const char *name, mode_t kind, const struct own *own)
{
  const int flags = O_PATH | O_NOFOLLOW | O_CLOEXEC | (kind == S_IFDIR ? O_DIRECTORY : 0);
  int entry = openat(above, name, flags);
  if (entry < 0 && errno == ENOENT) {
    make_entry(above, name, kind, own);
    entry = openat(above, name, flags);
  }
  if (entry < 0) die("enter", name);
  close(above);
  return entry;
}

/* The place itself, of the same kind as what is put there. */
static int open_target(const char *path, mode_t kind, const struct own *own)
{
  char copy[PATH_MAX], *rest = copy + 1;
  errno = ENAMETOOLONG;
  if (*path != '/' || strlen(path) >= sizeof copy) die("place a mount at", path);
  strcpy(copy, path);
  int at = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (at < 0) die("open", "/");
  for (char *slash; (slash = strchr(rest, '/')); rest = slash + 1) {
    *slash = '\0';
    at = enter(at, rest, S_IFDIR, own);
  }
  return enter(at, rest, kind, own);
}

static void set_flags(const struct place *place)
{
  struct statvfs mounted;
  const unsigned long wanted = MS_NOSUID | MS_NODEV | (place->readonly ? MS_RDONLY : 0) | (place->noexec ? MS_NOEXEC : 0);
  /* What the host mounts below the source later is not the cell's. */
  if (mount(NULL, place->from, NULL, MS_PRIVATE | MS_REC, NULL) < 0) die("make private", place->to);
  if (mount(NULL, place->from, NULL, MS_BIND | MS_REMOUNT | wanted | mount_flags(place->from), NULL) < 0) die("set flags of", place->to);
  if (statvfs(place->from, &mounted) < 0) die("look at mount", place->to);
  errno = EROFS;
  if (!(mounted.f_flag & ST_RDONLY) != !place->readonly) die(place->readonly ? "make read-only" : "make writable", place->to);
}

/* What an overlay was laid over stays behind when that moves on. */
static void uncover(const char *from, const struct arguments *arguments)
{
  for (size_t i = 0; i < arguments->overlay_count; i++)
    if (!strcmp(arguments->overlays[i].from, from) && umount2(from, MNT_DETACH) < 0) die("unmount", from);
}

static void place_one(const struct place *place, const struct own *own, const struct arguments *arguments)
{
  struct stat source;
  errno = EINVAL;
  if (*place->from != '/') die("place a mount from", place->from);
  if (lstat(place->from, &source) < 0) die("look at", place->from);
  const mode_t kind = S_ISDIR(source.st_mode) ? S_IFDIR : S_IFREG;
  set_flags(place);
  int target = open_target(place->to, kind, own);
  if (syscall(SYS_move_mount, AT_FDCWD, place->from, target, "", TO_EMPTY_PATH) < 0) die("place a mount at", place->to);
  close(target);
  uncover(place->from, arguments);
  if (kind == S_IFDIR ? rmdir(place->from) < 0 : unlink(place->from) < 0) die("remove", place->from);
}

/* Where the kernel moves no mounts: what is left at its first place covers nothing but an empty folder, and goes too. */
static void bind_one(const struct binding *binding, const struct own *own)
{
  struct stat source;
  errno = EINVAL;
  if (*binding->from != '/') die("bind a mount from", binding->from);
  if (lstat(binding->from, &source) < 0) die("look at", binding->from);
  close(open_target(binding->to, S_ISDIR(source.st_mode) ? S_IFDIR : S_IFREG, own));
  if (mount(binding->from, binding->to, NULL, MS_BIND, NULL) < 0) die("bind a mount at", binding->to);
  if (umount2(binding->from, MNT_DETACH) < 0) die("unmount", binding->from);
}

/* Empty once all are moved on; its name would only tell a guest how the cell was built. */
static void remove_folder_of(const char *path)
{
  char folder[PATH_MAX];
  const size_t length = (size_t)(strrchr(path, '/') - path);
  errno = ENAMETOOLONG;
  if (length >= sizeof folder) die("remove the folder of", path);
  memcpy(folder, path, length);
  folder[length] = '\0';
  if (length > 0 && rmdir(folder) < 0) die("remove", folder);
}

void place_recognise(const struct arguments *arguments)
{
  for (size_t i = 0; i < arguments->recognition_count; i++) recognise(&arguments->recognitions[i]);
}

void place_mounts(const struct arguments *arguments)
{
  struct stat root, disk;
  if (!arguments->place_count && !arguments->binding_count) return;
  if (stat("/", &root) < 0) die("look at", "/");
  disk = root;
  if (arguments->writable_count && stat(arguments->writables[0].path, &disk) < 0) die("look at", arguments->writables[0].path);
  const struct own own = { .root = root.st_dev, .disk = disk.st_dev };
  for (size_t i = 0; i < arguments->binding_count; i++) bind_one(&arguments->bindings[i], &own);
  for (size_t i = 0; i < arguments->place_count; i++) place_one(&arguments->places[i], &own, arguments);
  if (arguments->place_count) remove_folder_of(arguments->places[0].from);
}
