/* From a fork of the keeper to the gate of the guest's program: every step that makes it less than the warden, in the one order that works. */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "caps.h"
#include "fds.h"
#include "keeper.h"
#include "program.h"
#include "report.h"
#include "standing.h"

_Noreturn void program_fail(const struct child *child, struct failure *failure)
{
  ssize_t ignored = write(child->status, failure, sizeof *failure);
  (void)ignored;
  _exit(127);
}

static _Noreturn void fail(const struct child *child, const char *verb, const char *object)
{
  struct failure failure = { .stage = STAGE_SET_UP };
  failure_note(&failure, verb, object);
  program_fail(child, &failure);
}

static int open_below(const struct join *join, const char *group)
{
  char path[START_GROUP_MOST + 1 + sizeof join->file];
  snprintf(path, sizeof path, "%s%s%s", group, *group ? "/" : "", join->file);
  return openat(join->fd, path, O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
}

/* The descriptors opened here close with all the others. */
static void join_groups(const struct child *child)
{
  const char *group = child->start->group;
  bool placed = !*group;
  for (size_t i = 0; i < child->warden->join_count; i++) {
    const struct join *join = &child->warden->joins[i];
    int fd = *join->file ? open_below(join, group) : join->fd;
    if (fd < 0) fail(child, "open", "cgroup");
    if (write(fd, "0", 1) < 0) fail(child, "join", "cgroup");
    placed = placed || *join->file;
  }
  errno = ENOENT;
  if (!placed) fail(child, "find a place to join group", group);
}

static int move_up(const struct child *child, int fd)
{
  int moved = fcntl(fd, F_DUPFD_CLOEXEC, ASIDE_OUT_FD + 1);
  if (moved < 0) fail(child, "move", "a descriptor");
  return moved;
}

/* The numbers of what it is to have are fixed, and may be taken by what is needed until it begins. */
static void make_way(struct child *child)
{
  child->status = move_up(child, child->status);
  if (child->rules.given) child->rules.fd = move_up(child, child->rules.fd);
}

static void place_layers(struct child *child)
{
  errno = EOPNOTSUPP;
  if (child->warden->layers < 0) fail(child, "find", "the layers");
  make_way(child);
  if (dup2(child->warden->layers, LAYERS_FD) < 0) fail(child, "place", "the layers");
}

/* Each end may have the number that the other is to have. */
static void place_aside(struct child *child)
{
  make_way(child);
  int in = move_up(child, child->streams[0]), out = move_up(child, child->streams[ENDS_ASIDE]);
  if (dup2(in, ASIDE_IN_FD) < 0 || dup2(out, ASIDE_OUT_FD) < 0) fail(child, "place", "the aside");
}

static void close_what_is_not_its_own(struct child *child)
{
  if (child->start->layers) place_layers(child);
  if (child->start->aside) place_aside(child);
  struct fds_kept kept = { .fds = { child->status }, .count = 1 };
  if (child->rules.given) kept.fds[kept.count++] = child->rules.fd;
  if (child->start->layers) kept.fds[kept.count++] = LAYERS_FD;
  if (child->start->aside) kept.fds[kept.count++] = ASIDE_IN_FD;
  if (child->start->aside) kept.fds[kept.count++] = ASIDE_OUT_FD;
  if (fds_close_all_but(&kept) < 0) fail(child, "close", "descriptors");
}

static void reset_signals(void)
{
  /* By raw calls: libc keeps two of the numbers to itself and would leave them as they were inherited. All zero is SIG_DFL. */
  static const unsigned char defaults[64];
  for (int number = 1; number <= 64; number++) syscall(SYS_rt_sigaction, number, defaults, NULL, 8);
}

static void set_rlimits(const struct child *child)
{
  if (setrlimit(RLIMIT_NOFILE, &child->warden->files) < 0) fail(child, "set", "rlimit of files");
  for (uint32_t i = 0; i < child->start->rlimit_count; i++) {
    const struct start_rlimit *wanted = &child->start->rlimits[i];
    struct rlimit limit = { .rlim_cur = wanted->soft, .rlim_max = wanted->hard };
    if (setrlimit((int)wanted->resource, &limit) < 0) fail(child, "set", "rlimit");
  }
}

static void empty_groups(const struct child *child)
{
  const gid_t mark = child->mark;
  if (mark) {
    if (setgroups(1, &mark) < 0) fail(child, "keep", "the mark of the run");
    return;
  }
  if (getgroups(0, NULL) == 0 || setgroups(0, NULL) == 0) return;
  /* With a single mapped id the kernel forbids setgroups to everyone; the program is then what the warden's user is anyway. */
  bool same_ids = child->start->uid == getuid() && child->start->gid == getgid();
  if (errno != EPERM || !same_ids) fail(child, "empty", "supplementary groups");
}

static void take_ids(const struct child *child)
{
  uint32_t uid = child->start->uid, gid = child->start->gid;
  empty_groups(child);
  if (prctl(PR_SET_KEEPCAPS, child->start->capabilities != 0) < 0) fail(child, "keep", "capabilities");
  if (getgid() != gid || getegid() != gid)
    if (setresgid(gid, gid, gid) < 0) fail(child, "set", "group id");
  if (getuid() != uid || geteuid() != uid)
    if (setresuid(uid, uid, uid) < 0) fail(child, "set", "user id");
  if (prctl(PR_SET_KEEPCAPS, 0) < 0) fail(child, "keep", "capabilities");
}

static void bound_capabilities(const struct child *child)
{
  if (caps_bound(child->start->capabilities) == 0) return;
  /* Without a cell around it an ordinary user's warden cannot do this, and no_new_privs keeps the bounding set from mattering. */
  if (errno != EPERM || !child->warden->subreaper) fail(child, "drop", "capabilities from the bounding set");
}

static void drop_privileges(const struct child *child)
{
  if (caps_clear_ambient() < 0) fail(child, "clear", "ambient capabilities");
  bound_capabilities(child);
  take_ids(child);
  if (caps_set(child->start->capabilities) < 0) fail(child, "set", "capabilities");
  /* After the ids: changing them clears both. Others of the same id must not look into what is not yet theirs, however long it waits. */
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (prctl(PR_SET_DUMPABLE, 0) < 0) fail(child, "become", "undumpable");
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0) fail(child, "set", "no_new_privs");
}

static void load_filter(const struct child *child)
{
  /* A zygote has that of whoever makes liners, and its programs load this one. */
  if (!child->warden->filter_length || child->start->zygote) return;
  struct sock_fprog program = { .len = (unsigned short)child->warden->filter_length, .filter = child->warden->filter };
  if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) < 0) fail(child, "load", "seccomp filter");
}

static void obey_rules(const struct child *child)
{
  if (rules_obey(&child->rules) < 0) fail(child, "obey", "file rules");
  if (child->rules.given) close(child->rules.fd);
}

static void enter_folder(const struct child *child)
{
  if (chdir(child->start->cwd) == 0) return;
  struct failure failure = { .stage = STAGE_CWD };
  failure_note(&failure, "enter", child->start->cwd);
  program_fail(child, &failure);
}

/*
 * Everything is done but execve. The filter holds already and may refuse these two calls: then their errno is told, by the exit status where it
 * cannot be written. They are not tried again on EINTR, which only such a filter gives, there being no handler of signals.
 */
static void wait_at_gate(struct child *child)
{
  const struct failure word = { .stage = AT_GATE };
  uint8_t release[START_TOLD_MOST];
  ssize_t written = write(child->status, &word, sizeof word);
  if (written != (ssize_t)sizeof word) _exit(written < 0 ? errno : EIO);
  ssize_t got = read(child->status, release, sizeof release);
  if (got < 0) fail(child, "wait at", "the gate");
  if (got == 0) _exit(EPIPE);
  if (!child->start->later) return;
  errno = EINTR;
  if (!standing_is(&child->standing)) fail(child, "keep", "limits and priority at the gate");
  errno = EPROTO;
  if (start_tell(release, (size_t)got, child->start)) fail(child, "understand", "RELEASE");
  enter_folder(child);
}

static void unblock_signals(void)
{
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, NULL);
}

/* So that whoever hears it knows its number where that one is. The link is nobody else's to write to. */
static void show_number(const struct plan *plan)
{
  const struct report report = { .kind = REPORT_BORN };
  while (send(plan->link, &report, sizeof report, MSG_NOSIGNAL) < 0 && errno == EINTR) { }
}

void program_reach_gate(struct child *child, const struct plan *plan)
{
  if (setsid() < 0) fail(child, "make", "session");
  if (child->start->liner || child->start->zygote) show_number(plan);
  if (child->start->terminal && ioctl(0, TIOCSCTTY, 0) < 0) fail(child, "control", "terminal");
  umask(022);
  reset_signals();
  join_groups(child);
  close_what_is_not_its_own(child);
  set_rlimits(child);
  standing_note(&child->standing);
  drop_privileges(child);
  if (!child->start->later) enter_folder(child);
  if (child->start->worker) prctl(PR_SET_NAME, "files");
  unblock_signals();
  obey_rules(child);
  load_filter(child);
  if (child->start->gate) wait_at_gate(child);
}
