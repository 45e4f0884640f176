#include "setup.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "die.h"
#include "layers.h"
#include "mount-calls.h"
#include "mount-flags.h"
#include "place.h"

/*
 * Inodes are shared by whoever can open them: with the host's own a guest could watch what the host opens, and hold its locks. Those of an
 * overlay belong to this cell alone. Without a layer to write to the kernel wants two to read from, so the second is empty.
 */
static void veil(const char *path)
{
  static const char empty[] = "/run";
  char options[64];
  int folder = open(path, O_PATH | O_CLOEXEC);
  if (folder < 0) die("open", path);
  struct stat entry;
  if (fstat(folder, &entry) < 0) die("look at", path);
  if (S_ISDIR(entry.st_mode)) {
    /* By descriptor, because the options give a meaning to some characters that a path may have. */
    snprintf(options, sizeof options, "lowerdir=/proc/self/fd/%d:%s", folder, empty);
    if (mount("overlay", path, "overlay", MS_RDONLY | MS_NOSUID | MS_NODEV, options) < 0) die("veil", path);
  }
  close(folder);
}

static void make_on_disk(int disk, const struct writable *writable, int index)
{
  char name[16];
  snprintf(name, sizeof name, "%d", index);
  if (mkdirat(disk, name, 0700) < 0) die("make folder for", writable->path);
  /* The mode first: to set it on a folder that was given away would take one capability more. */
  if (fchmodat(disk, name, writable->mode, 0) < 0) die("set mode of", writable->path);
  bool owned = writable->uid == geteuid() && writable->gid == getegid();
  if (!owned && fchownat(disk, name, writable->uid, writable->gid, AT_SYMLINK_NOFOLLOW) < 0) die("give away", writable->path);
}

static int clone_folder(int disk, const struct writable *writable, int index)
{
  char name[16];
  snprintf(name, sizeof name, "%d", index);
  make_on_disk(disk, writable, index);
  int tree = (int)syscall(SYS_open_tree, disk, name, CLONE_TREE | O_CLOEXEC);
  if (tree < 0) die("clone mount for", writable->path);
  return tree;
}

/*
 * A disk that somebody else made and mounted: its folders are bound by their paths, because such a kernel may have neither open_tree nor move_mount. Nothing of a
 * guest's is there yet that could put a link in the way.
 */
static int spread_disk(const struct arguments *arguments)
{
  char from[ARGUMENTS_PATH_LONGEST];
  int disk = open(arguments->disk_at, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (disk < 0) die("open", arguments->disk_at);
  for (size_t i = 0; i < arguments->writable_count; i++) {
    const struct writable *writable = &arguments->writables[i];
    make_on_disk(disk, writable, (int)i);
    snprintf(from, sizeof from, "%s/%d", arguments->disk_at, (int)i);
    if (mount(from, writable->path, NULL, MS_BIND, NULL) < 0) die("mount writable", writable->path);
  }
  close(disk);
  return -1;
}

/*
 * One tmpfs carries every writable folder, so that they share its budget. It needs a place only until each folder has become a mount
 * of its own; the first of the paths lends it. Answers the folder of layers.
 */
static int mount_disk(const struct arguments *arguments)
{
  if (arguments->disk_at) return spread_disk(arguments);
  if (!arguments->disk_bytes) return -1;
  const char *stage = arguments->writables[0].path;
  char options[128];
  snprintf(options, sizeof options, "size=%s,nr_inodes=%s,mode=0755", arguments->disk_bytes, arguments->disk_inodes);
  if (mount("tmpfs", stage, "tmpfs", MS_NOSUID | MS_NODEV, options) < 0) die("mount disk at", stage);
  int disk = open(stage, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (disk < 0) die("open", stage);
  int trees[ARGUMENTS_PATHS_MOST];
  for (size_t i = 0; i < arguments->writable_count; i++) trees[i] = clone_folder(disk, &arguments->writables[i], (int)i);
  int layers = layers_lay(arguments, disk);
  close(disk);
  if (umount2(stage, MNT_DETACH) < 0) die("unmount", stage);
  for (size_t i = 0; i < arguments->writable_count; i++) {
    const char *path = arguments->writables[i].path;
    if (syscall(SYS_move_mount, trees[i], "", AT_FDCWD, path, FROM_EMPTY_PATH) < 0) die("mount writable", path);
    close(trees[i]);
  }
  return layers;
}

static void let_go(const char *path)
{
  if (umount2(path, MNT_DETACH) < 0) die("unmount", path);
}

/* What a guest writes it cannot start then, and no loader can map it to be executed. */
static void forbid_execution(const char *path)
{
  if (mount(NULL, path, NULL, MS_BIND | MS_REMOUNT | MS_NOEXEC | mount_flags(path), NULL) < 0) die("make noexec", path);
}

static void make_folder(const struct writable *folder)
{
  if (mkdir(folder->path, 0700) < 0 && errno != EEXIST) die("make folder", folder->path);
  int fd = open(folder->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0) die("open", folder->path);
  /* Owner first: the mode of a folder that changes hands may lose bits. */
  if (fchown(fd, folder->uid, folder->gid) < 0) die("give away", folder->path);
  if (fchmod(fd, folder->mode) < 0) die("set mode of", folder->path);
  close(fd);
}

/* The device itself: whoever swapped it for a link would have something else bound over what is to be masked. */
static int open_null(void)
{
  struct stat entry;
  int null = open("/dev/null", O_PATH | O_NOFOLLOW | O_CLOEXEC);
  if (null < 0 || fstat(null, &entry) < 0) die("open", "/dev/null");
  errno = ENODEV;
  /* gVisor tells no number of a device that its gofer shows; elsewhere one without a number is opened by nobody. */
  if (!S_ISCHR(entry.st_mode) || (entry.st_rdev != makedev(1, 3) && entry.st_rdev != 0)) die("recognise", "/dev/null");
  return null;
}

/*
 * By its descriptor, which is the device that was looked at, whatever has its name by now. Where a device has no number, the kernel is one that would bind the link of
 * that descriptor instead of what it leads to: there it is bound by its name, and looked at afterwards.
 */
static int cover_file(const char *path, int null)
{
  struct stat device, covered;
  char from[64];
  if (fstat(null, &device) < 0) return -1;
  bool numbered = device.st_rdev != 0;
  snprintf(from, sizeof from, "/proc/self/fd/%d", null);
  if (mount(numbered ? from : "/dev/null", path, NULL, MS_BIND, NULL) < 0) return -1;
  if (numbered) return 0;
  if (lstat(path, &covered) < 0) return -1;
  errno = ENODEV;
  return covered.st_dev == device.st_dev && covered.st_ino == device.st_ino ? 0 : -1;
}

static void mask(const char *path, int null)
{
  struct stat entry;
  if (stat(path, &entry) < 0) {
    if (errno == ENOENT || errno == ENOTDIR) return;
    die("look at", path);
  }
  const unsigned long closed = MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC;
  int result = S_ISDIR(entry.st_mode) ? mount("tmpfs", path, "tmpfs", closed, "size=4096,nr_inodes=1,mode=0555") : cover_file(path, null);
  /* Where a tmpfs cannot be made that small, a folder that is empty and cannot be written to does as well. */
  if (result < 0 && errno == EINVAL && S_ISDIR(entry.st_mode)) result = mount("/run", path, NULL, MS_BIND, NULL);
  if (result < 0) die("mask", path);
}

/* A path that is no mount of its own is bound onto itself first, with the mounts beneath it, so that it alone becomes read-only. */
static void make_readonly(const char *path)
{
  struct stat entry;
  if (stat(path, &entry) < 0 && (errno == ENOENT || errno == ENOTDIR)) return;
  unsigned long flags = MS_BIND | MS_REMOUNT | MS_RDONLY | mount_flags(path);
  if (mount(NULL, path, NULL, flags, NULL) == 0) return;
  if (errno != EINVAL || mount(path, path, NULL, MS_BIND | MS_REC, NULL) < 0 || mount(NULL, path, NULL, flags, NULL) < 0) die("make read-only", path);
}

/* Until a program has become another it is the warden's file that /proc/self/exe leads to, mounted anywhere or not: nobody may start that again. */
static void detach(const char *path)
{
  const unsigned long closed = MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC;
  if (mount(NULL, path, NULL, MS_BIND | MS_REMOUNT | closed | mount_flags(path), NULL) < 0) die("close", path);
  if (umount2(path, MNT_DETACH) < 0) die("detach", path);
}

/* What somebody else mounted, with flags that cannot be changed on every kernel, is covered by one that nobody can write to. */
static void mount_proc(void)
{
  if (mount("proc", "/proc", "proc", MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) < 0) die("mount", "/proc");
}

/* A file, or an empty folder, that not every kernel has. */
static void remove_entry(const char *path)
{
  if (unlink(path) < 0 && errno != ENOENT && errno != ENOTDIR && rmdir(path) < 0) die("remove", path);
}

int setup_mounts(const struct arguments *arguments)
{
  if (arguments->own_proc) mount_proc();
  for (size_t i = 0; i < arguments->removals.count; i++) remove_entry(arguments->removals.list[i]);
  for (size_t i = 0; i < arguments->veils.count; i++) veil(arguments->veils.list[i]);
  place_recognise(arguments);
  int layers = arguments->layers ? layers_lay_within(arguments) : mount_disk(arguments);
  for (size_t i = 0; i < arguments->folder_count; i++) make_folder(&arguments->folders[i]);
  place_mounts(arguments);
  for (size_t i = 0; arguments->noexec && i < arguments->writable_count; i++) forbid_execution(arguments->writables[i].path);
  if (arguments->pts && mount("devpts", "/dev/pts", "devpts", MS_NOSUID | MS_NOEXEC, "newinstance,ptmxmode=0666,mode=0620,max=64") < 0) die("mount devpts at", "/dev/pts");
  for (size_t i = 0; i < arguments->readonlys.count; i++) make_readonly(arguments->readonlys.list[i]);
  /* Last, so that a mask is as read-only as the /dev/null that it is made of. */
  int null = arguments->masks.count > 0 ? open_null() : -1;
  for (size_t i = 0; i < arguments->masks.count; i++) mask(arguments->masks.list[i], null);
  if (null >= 0) close(null);
  for (size_t i = 0; i < arguments->detaches.count; i++) detach(arguments->detaches.list[i]);
  for (size_t i = 0; i < arguments->releases.count; i++) let_go(arguments->releases.list[i]);
  return layers;
}

void setup_hide(pid_t helper)
{
  char path[32];
  mask("/proc/1", -1);
  if (!helper) return;
  snprintf(path, sizeof path, "/proc/%d", (int)helper);
  mask(path, -1);
}
