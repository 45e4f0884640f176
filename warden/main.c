/* The warden: first process of a cell. See PROTOCOL.md for what it is told and what it answers. */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "arguments.h"
#include "caps.h"
#include "cradle.h"
#include "die.h"
#include "entry.h"
#include "fds.h"
#include "guests.h"
#include "kin.h"
#include "kill.h"
#include "lining.h"
#include "mux.h"
#include "once.h"
#include "self-filter.h"
#include "setup.h"
#include "told.h"

/* What the warden uses (ids, kill, bounding sets), and what an in-cell root may be given; of these it keeps those it was given. */
static const uint64_t KEPT = CAPS_BIT(CAP_CHOWN) | CAPS_BIT(CAP_DAC_OVERRIDE) | CAPS_BIT(CAP_FOWNER) | CAPS_BIT(CAP_FSETID) | CAPS_BIT(CAP_KILL)
  | CAPS_BIT(CAP_SETGID) | CAPS_BIT(CAP_SETUID) | CAPS_BIT(CAP_SETPCAP) | CAPS_BIT(CAP_NET_BIND_SERVICE) | CAPS_BIT(CAP_NET_RAW)
  | CAPS_BIT(CAP_SYS_CHROOT) | CAPS_BIT(CAP_MKNOD) | CAPS_BIT(CAP_AUDIT_WRITE) | CAPS_BIT(CAP_SETFCAP);

static void settle_descriptors(struct warden *warden, const struct arguments *arguments)
{
  if (fcntl(0, F_GETFD) < 0 || fcntl(1, F_GETFD) < 0) die("find", "the channel");
  if (fcntl(2, F_GETFD) < 0 && open("/dev/null", O_WRONLY) < 0) die("open", "/dev/null");
  struct fds_kept kept = { 0 };
  for (size_t i = 0; i < arguments->join_count; i++) {
    const struct join_argument *join = &arguments->joins[i];
    if (fcntl(join->fd, F_SETFD, FD_CLOEXEC) < 0) die("find", "a descriptor to join");
    kept.fds[kept.count++] = warden->joins[i].fd = join->fd;
    /* A copy: the arguments are overwritten. */
    if (join->file) strcpy(warden->joins[i].file, join->file);
  }
  warden->join_count = arguments->join_count;
  if (warden->layers >= 0) kept.fds[kept.count++] = warden->layers;
  if (warden->told) kept.fds[kept.count++] = warden->told->status;
  if (warden->kin.brake.pid) kept.fds[kept.count++] = warden->kin.brake.socket;
  /* Every guest enters it as it enters what the driver opened. */
  if (warden->kin.guests >= 0) kept.fds[kept.count++] = warden->joins[warden->join_count++].fd = warden->kin.guests;
  if (fds_close_all_but(&kept) < 0) die("close", "descriptors");
  if (fds_set_nonblocking(0) < 0 || fds_set_nonblocking(1) < 0) die("set non-blocking", "the channel");
}

/* Room for five descriptors of each run; bounded, because kernels without close_range close every number below it. */
static void raise_files(struct warden *warden)
{
  if (getrlimit(RLIMIT_NOFILE, &warden->files) < 0) die("read", "rlimit of files");
  struct rlimit limit = { .rlim_cur = warden->files.rlim_max < WARDEN_FILES_MOST ? warden->files.rlim_max : WARDEN_FILES_MOST, .rlim_max = warden->files.rlim_max };
  if (setrlimit(RLIMIT_NOFILE, &limit) < 0) die("set", "rlimit of files");
}

static void watch_signals(struct warden *warden)
{
  sigset_t watched;
  sigemptyset(&watched);
  sigaddset(&watched, SIGCHLD);
  /* Only outside a cell: there a guest of the same id could otherwise end it, and pid 1 ignores what it has no use for. */
  if (warden->subreaper) sigaddset(&watched, SIGTERM);
  struct sigaction quiet = { .sa_handler = SIG_DFL, .sa_flags = SA_NOCLDSTOP }, ignore = { .sa_handler = SIG_IGN };
  sigaction(SIGCHLD, &quiet, NULL);
  /* A terminal's signals go to its whole group; the engine decides what they mean. */
  for (const int *number = (const int[]){ SIGPIPE, SIGINT, SIGHUP, SIGQUIT, 0 }; *number; number++) sigaction(*number, &ignore, NULL);
  if (sigprocmask(SIG_SETMASK, &watched, NULL) < 0) die("block", "signals");
  warden->signals = signalfd(-1, &watched, SFD_NONBLOCK | SFD_CLOEXEC);
  if (warden->signals < 0) die("watch", "signals");
}

/* Some kernels give a first process that is not root no capabilities: it is started as root then, and becomes who it is to be. */
static void become_itself(const struct arguments *arguments)
{
  uint64_t permitted;
  if (!arguments->becomes) return;
  if (caps_permitted(&permitted) < 0) die("read", "capabilities");
  if (prctl(PR_SET_KEEPCAPS, 1) < 0 || setgroups(0, NULL) < 0) die("drop", "groups");
  if (setresgid(arguments->own_gid, arguments->own_gid, arguments->own_gid) < 0) die("set", "group id");
  if (setresuid(arguments->own_uid, arguments->own_uid, arguments->own_uid) < 0) die("set", "user id");
  if (prctl(PR_SET_KEEPCAPS, 0) < 0 || caps_set(permitted) < 0) die("keep", "capabilities");
}

static void drop_what_is_not_used(struct warden *warden)
{
  uint64_t permitted;
  if (caps_permitted(&permitted) < 0) die("read", "capabilities");
  if (caps_clear_ambient() < 0) die("clear", "ambient capabilities");
  if (permitted & CAPS_BIT(CAP_SETPCAP) && caps_bound(KEPT) < 0) die("drop", "capabilities from the bounding set");
  if (caps_set(permitted & KEPT) < 0) die("drop", "capabilities");
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0) die("set", "no_new_privs");
  warden->shares_id = !(permitted & CAPS_BIT(CAP_SETUID));
  if (self_filter_load(&(struct self_filter){ .guests_share_id = warden->shares_id }) < 0) die("load", "the warden's filter");
}

static void take_office(struct warden *warden)
{
  errno = EINVAL;
  if (warden->subreaper ? prctl(PR_SET_CHILD_SUBREAPER, 1) < 0 : getpid() != 1) die("become", warden->subreaper ? "subreaper" : "pid 1");
  prctl(PR_SET_NAME, "warden");
  if (prctl(PR_SET_DUMPABLE, 0) < 0) die("become", "undumpable");
  if (!warden->subreaper) drop_what_is_not_used(warden);
}

int main(int argc, char **argv, char **envp)
{
  (void)argc;
  once(argv, envp);
  await_engine(argv);
  struct arguments *arguments = calloc(1, sizeof *arguments);
  struct warden *warden = calloc(1, sizeof *warden);
  if (!arguments || !warden) die("allocate", "the warden");
  arguments_parse(arguments, argv);
  warden->subreaper = arguments->subreaper;
  entry_make(arguments);
  warden->layers = setup_mounts(arguments);
  warden->lining = lining_plan(arguments);
  warden->kin = kin_open(arguments);
  if (arguments->tells) warden->told = told_begin();
  if (arguments->hides) setup_hide(warden->kin.brake.pid);
  become_itself(arguments);
  warden->doors_plan = arguments->doors;
  settle_descriptors(warden, arguments);
  arguments_wipe(argv, envp);
  free(arguments);
  raise_files(warden);
  watch_signals(warden);
  guests_open_doors(warden);
  cradle_fork(warden);
  take_office(warden);
  mux_serve(warden);
  if (warden->subreaper) kill_all_descendants(warden);
  errno = EPROTO;
  if (warden->fatal) die("obey the engine:", warden->fatal);
  return 0;
}
