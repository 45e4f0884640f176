/*
 * A liner is made by its own first process, which has every capability, but only in the user namespace that is the liner's: there one id is known, which is that
 * of whoever made it. What the cell has mounted it can cover, and never uncover or change.
 *
 * The disk is mounted where /proc is to be, and covered by that once each of its folders has become a mount of its own: so nothing has to be unmounted, which
 * takes the kernel long.
 */
#include "liner.h"

#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "doors-handover.h"
#include "mount-calls.h"

static const char PROC[] = "/proc";
static const unsigned long PROC_FLAGS = MS_NOSUID | MS_NODEV | MS_NOEXEC;

static void write_own(const struct plan *plan, const char *path, const char *text)
{
  int fd = open(path, O_WRONLY | O_CLOEXEC);
  if (fd < 0 || write(fd, text, strlen(text)) < 0) keeper_give_up(plan, "write", path);
  close(fd);
}

/*
 * Its files in /proc are its own only while it may be looked into; nobody who might is in this cell yet, or sees it. Where the cell's memory is used up, what
 * is in a liner is to end before whoever makes the next one does: its pages may be of files, and then it is not the largest.
 */
static void map_ids(const struct plan *plan, const struct lining *lining)
{
  char map[32];
  if (prctl(PR_SET_DUMPABLE, 1) < 0) keeper_give_up(plan, "become", "dumpable");
  write_own(plan, "/proc/self/oom_score_adj", "1000");
  write_own(plan, "/proc/self/setgroups", "deny");
  snprintf(map, sizeof map, "%u %u 1", plan->start->gid, lining->gid);
  write_own(plan, "/proc/self/gid_map", map);
  snprintf(map, sizeof map, "%u %u 1", plan->start->uid, lining->uid);
  write_own(plan, "/proc/self/uid_map", map);
  if (prctl(PR_SET_DUMPABLE, 0) < 0) keeper_give_up(plan, "become", "undumpable");
}

static int clone_folder(const struct plan *plan, int disk, const struct lining *lining, uint32_t index)
{
  char name[16];
  snprintf(name, sizeof name, "%u", index);
  if (mkdirat(disk, name, 0700) < 0 || fchmodat(disk, name, lining->folders[index].mode, 0) < 0) keeper_give_up(plan, "make", lining->folders[index].path);
  int tree = (int)syscall(SYS_open_tree, disk, name, CLONE_TREE | O_CLOEXEC);
  if (tree < 0) keeper_give_up(plan, "clone mount for", lining->folders[index].path);
  return tree;
}

static void mount_disk(const struct plan *plan, const struct lining *lining)
{
  char options[96];
  snprintf(options, sizeof options, "size=%llu,nr_inodes=%llu,mode=0755", (unsigned long long)plan->start->disk_bytes, (unsigned long long)plan->start->disk_inodes);
  if (mount("tmpfs", PROC, "tmpfs", MS_NOSUID | MS_NODEV, options) < 0) keeper_give_up(plan, "mount", "the disk of a liner");
  int disk = open(PROC, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (disk < 0) keeper_give_up(plan, "open", "the disk of a liner");
  for (uint32_t i = 0; i < lining->folder_count; i++) {
    if (!lining->folders[i].mode) continue;
    int tree = clone_folder(plan, disk, lining, i);
    if (syscall(SYS_move_mount, tree, "", AT_FDCWD, lining->folders[i].path, FROM_EMPTY_PATH) < 0) keeper_give_up(plan, "mount", lining->folders[i].path);
    close(tree);
  }
  close(disk);
}

/* One empty folder covers all: to make another filesystem for each takes the kernel long, and to put it away again. */
static int cover(const char *path, enum lining_cover how, const char **empty)
{
  if (how == COVER_FILE) return mount("/dev/null", path, NULL, MS_BIND, NULL);
  if (*empty) return mount(*empty, path, NULL, MS_BIND, NULL);
  *empty = path;
  return mount("tmpfs", path, "tmpfs", MS_RDONLY | PROC_FLAGS, "size=4096,nr_inodes=1,mode=0555");
}

/* Nothing of it can be written to: not what is the machine's, and not who is to end first where memory is used up. */
static void mount_proc(const struct plan *plan, const struct lining *lining)
{
  if (mount("proc", PROC, "proc", PROC_FLAGS | MS_RDONLY, NULL) < 0) keeper_give_up(plan, "mount", PROC);
  const char *empty = NULL;
  for (uint32_t i = 0; i < lining->cover_count; i++)
    if (cover(lining->covers[i].path, (enum lining_cover)lining->covers[i].how, &empty) < 0) keeper_give_up(plan, "cover", lining->covers[i].path);
}

static void raise_loopback(const struct plan *plan)
{
  struct ifreq loopback = { .ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING };
  int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0 || ioctl(fd, SIOCSIFFLAGS, &loopback) < 0) keeper_give_up(plan, "raise", "lo");
  close(fd);
}

/* The warden is not in this namespace, and could not enter it: it is handed what was opened here. */
static void open_doors(const struct plan *plan)
{
  struct doors doors = { .count = 0 };
  const char *object = NULL;
  if (!plan->doors || !plan->doors->proxy) return;
  if (doors_open(plan->doors, &doors, &object) < 0) keeper_give_up(plan, "open", object);
  if (doors_hand_over(plan->link, &doors) < 0) keeper_give_up(plan, "hand over", "the doors of a liner");
  doors_close(&doors);
}

void liner_furnish(const struct plan *plan, const struct lining *lining)
{
  map_ids(plan, lining);
  if (mount(NULL, "/", NULL, MS_PRIVATE | MS_REC, NULL) < 0) keeper_give_up(plan, "make private", "the mounts of a liner");
  mount_disk(plan, lining);
  if (mount("devpts", "/dev/pts", "devpts", MS_NOSUID | MS_NOEXEC, "newinstance,ptmxmode=0666,mode=0620,max=64") < 0) keeper_give_up(plan, "mount", "/dev/pts");
  mount_proc(plan, lining);
  raise_loopback(plan);
  open_doors(plan);
}
