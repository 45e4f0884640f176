/*
 * The cradle leaves the warden's mounts for some of its own, in which nothing of the cell's disk can be reached and /proc is bare: the kernel lets nobody mount
 * another /proc where what is there is covered. Then it becomes nobody: an id of its own where there are several, no capability, a filter that is the
 * warden's but for what a liner is made with.
 */
#include "cradle-process.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "brood.h"
#include "caps.h"
#include "die.h"
#include "doors-handover.h"
#include "fds.h"
#include "liner.h"
#include "program.h"
#include "self-filter.h"

static void leave_mounts(const struct lining *lining)
{
  const unsigned long closed = MS_NOSUID | MS_NODEV | MS_NOEXEC;
  const char *stage = lining->folders[0].path;
  if (unshare(CLONE_NEWNS) < 0) die("make", "the mounts of the cradle");
  if (mount(NULL, "/", NULL, MS_PRIVATE | MS_REC, NULL) < 0) die("make private", "the mounts of the cradle");
  for (uint32_t i = 0; i < lining->folder_count; i++)
    if (umount2(lining->folders[i].path, MNT_DETACH) < 0) die("unmount for the cradle", lining->folders[i].path);
  /* There must be one for there to be another, so it is made before the first goes. */
  if (mount("proc", stage, "proc", closed, NULL) < 0) die("mount for the cradle", "/proc");
  if (umount2("/proc", MNT_DETACH) < 0) die("unmount for the cradle", "/proc");
  if (mount(stage, "/proc", NULL, MS_MOVE, NULL) < 0) die("move for the cradle", "/proc");
}

static void leave_descriptors(const struct warden *warden, int socket)
{
  int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
  if (nothing < 0) die("open", "/dev/null");
  struct fds_kept kept = { .fds = { socket }, .count = 1 };
  for (size_t i = 0; i < warden->join_count; i++) kept.fds[kept.count++] = warden->joins[i].fd;
  for (int fd = 0; fd < 2; fd++)
    if (dup2(nothing, fd) < 0) die("place", "/dev/null");
  if (fds_close_all_but(&kept) < 0) die("close", "descriptors");
}

static void become_nobody(const struct lining *lining)
{
  bool single = getuid() == lining->uid && getgid() == lining->gid;
  if (caps_clear_ambient() < 0 || caps_bound(0) < 0) die("drop", "capabilities of the cradle");
  if (!single && (setgroups(0, NULL) < 0 || setresgid(lining->gid, lining->gid, lining->gid) < 0 || setresuid(lining->uid, lining->uid, lining->uid) < 0))
    die("set", "the ids of the cradle");
  if (caps_set(0) < 0) die("drop", "capabilities of the cradle");
  /* A changed id clears it. */
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (prctl(PR_SET_DUMPABLE, 0) < 0) die("become", "undumpable");
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0) die("set", "no_new_privs");
  /* Whatever the ids of the cell, a program has that of its liner's first process. */
  if (self_filter_load(&(struct self_filter){ .guests_share_id = true, .makes_liners = true }) < 0) die("load", "the cradle's filter");
}

/* So that a cell in which no liner can be made never opens. */
static void try_liner(const struct warden *warden, const struct lining *lining, const struct doors_plan *doors)
{
  int link[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, link) < 0) die("make", "a link");
  pid_t pid = fork();
  if (pid < 0) die("fork", "a trial");
  if (pid == 0) {
    struct start start = { .uid = lining->uid, .gid = lining->gid, .disk_bytes = 65536, .disk_inodes = 64 };
    struct plan plan = { .warden = warden, .start = &start, .link = link[1], .doors = doors, .liner = true };
    pid_t first = (pid_t)syscall(SYS_clone, (unsigned long)(LINER_NAMESPACES | SIGCHLD), 0, 0, 0, 0);
    if (first < 0) keeper_give_up(&plan, "make", "the namespaces of a liner");
    if (first == 0) liner_furnish(&plan, lining);
    else while (waitpid(first, NULL, 0) < 0 && errno == EINTR) { }
    _exit(0);
  }
  close(link[1]);
  struct report report = { 0 };
  /* What it may hand over is none of this process's. */
  ssize_t got;
  while ((got = recv(link[0], &report, sizeof report, MSG_TRUNC)) > (ssize_t)sizeof report || (got < 0 && errno == EINTR)) {
    report.kind = 0;
    if (got > 0) doors_answer(link[0], 0);
  }
  while (waitpid(pid, NULL, 0) < 0 && errno == EINTR) { }
  close(link[0]);
  errno = (int)report.failure.error;
  if (report.kind == REPORT_FAILED) die("make a liner:", report.failure.text);
}

/* It has no keeper: what a program tells its keeper it tells the warden. Its socket and its library are what others have an aside at. */
static void become_zygote(struct brood *brood, struct plan *plan)
{
  struct brood_message *message = &brood->message;
  struct start *start = plan->start;
  int nothing[2];
  /* A pipe, as which its programs' input may be: what an interpreter finds out about that it finds out once. */
  if (message->fd_count < 2 || pipe(nothing) < 0) _exit(1);
  if (dup2(nothing[0], 0) < 0 || dup2(plan->streams[1], 1) < 0 || dup2(plan->streams[2], 2) < 0) _exit(1);
  plan->streams[0] = message->fds[message->fd_count - 2];
  plan->streams[ENDS_ASIDE] = message->fds[message->fd_count - 1];
  start->aside = true;
  start->uid = brood->lining.uid;
  start->gid = brood->lining.gid;
  become_program(plan, plan->link);
}

_Noreturn void cradle_become(const struct warden *warden, int socket)
{
  const struct lining *lining = warden->lining;
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, NULL);
  prctl(PR_SET_NAME, "cradle");
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  setsid();
  leave_mounts(lining);
  leave_descriptors(warden, socket);
  become_nobody(lining);
  struct brood *brood = brood_make(socket);
  if (!brood) die("allocate", "the cradle");
  brood->lining = *lining;
  brood->become_zygote = become_zygote;
  try_liner(&brood->warden, lining, &warden->doors_plan);
  dup2(0, 2);
  brood_greet(socket);
  struct plan plan;
  struct start start;
  int status = brood_serve(brood, &plan, &start);
  become_program(&plan, status);
}
