/*
 * The disk holds, for overlay N:
 *
 *   layers/N    what was written; its top is like the folder's own
 *   scratch/N   the kernel's
 *
 * The kernel keeps copies of the mounts that an overlay is made of, so neither this nor the folder beneath needs a place in the cell afterwards. An
 * overlay acts with the powers that the warden has now, whatever is given up later.
 */
#include "layers.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "die.h"

struct folders {
  int layers, work;
};

static int make_folder(int above, const char *name, mode_t mode)
{
  if (mkdirat(above, name, mode) < 0 && errno != EEXIST) die("make the folder", name);
  int folder = openat(above, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (folder < 0) die("open", name);
  return folder;
}

/* Without attributes a folder that took the place of another would show what the other held: an overlay does not refuse to be made then. */
static void check_attributes(int folder, const char *path)
{
  static const char trial[] = "user.overlay.trial";
  if (fsetxattr(folder, trial, "y", 1, 0) < 0 || fremovexattr(folder, trial) < 0) die("keep attributes of a layer over", path);
}

/* Its mode and owner are what the guest sees of the folder itself. Nobody gains an id by it. */
static void make_like(int layer, int lower, const char *path)
{
  struct stat status;
  if (fstat(lower, &status) < 0) die("look at", path);
  if (fchmod(layer, status.st_mode & 01777) < 0) die("set mode of a layer over", path);
  bool owned = status.st_uid == geteuid() && status.st_gid == getegid();
  if (!owned && fchown(layer, status.st_uid, status.st_gid) < 0) die("give away a layer over", path);
}

static void lay(const struct overlay *overlay, const struct folders *folders)
{
  char name[16], options[192];
  snprintf(name, sizeof name, "%u", overlay->index);
  int lower = open(overlay->from, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (lower < 0) die("open", overlay->from);
  int layer = make_folder(folders->layers, name, 0700), work = make_folder(folders->work, name, 0700);
  check_attributes(layer, overlay->from);
  make_like(layer, lower, overlay->from);
  /* By descriptor, because the options give a meaning to some characters that a path may have. */
  snprintf(options, sizeof options, "lowerdir=/proc/self/fd/%d,upperdir=/proc/self/fd/%d,workdir=/proc/self/fd/%d,userxattr", lower, layer, work);
  if (mount("overlay", overlay->from, "overlay", MS_NOSUID | MS_NODEV, options) < 0) die("overlay", overlay->from);
  close(lower);
  close(layer);
  close(work);
}

static int lay_all(const struct arguments *arguments, const struct folders *folders)
{
  for (size_t i = 0; i < arguments->overlay_count; i++) lay(&arguments->overlays[i], folders);
  close(folders->work);
  return folders->layers;
}

int layers_lay(const struct arguments *arguments, int disk)
{
  if (!arguments->overlay_count) return -1;
  return lay_all(arguments, &(struct folders){ .layers = make_folder(disk, "layers", 0755), .work = make_folder(disk, "scratch", 0700) });
}

int layers_lay_within(const struct arguments *arguments)
{
  const char *path = arguments->layers;
  int disk = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (disk < 0) die("open", path);
  int layers = lay_all(arguments, &(struct folders){ .layers = make_folder(disk, "layers", 0755), .work = make_folder(disk, "scratch", 0700) });
  close(disk);
  if (umount2(path, MNT_DETACH) < 0) die("unmount", path);
  if (rmdir(path) < 0) die("remove", path);
  return layers;
}
