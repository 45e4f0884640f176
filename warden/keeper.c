/*
 * The keeper of one run. It holds no secrets and no descriptors but its link to the warden: it forks the program, says how that
 * went, says how the program ended, and reaps whatever the program left behind until nothing of the run remains.
 *
 * The program's zombie is kept until the warden has answered, so that the warden never signals a number that was given to another.
 */
#include "keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "caps.h"
#include "fds.h"
#include "report.h"

static void tell(int link, const struct report *report)
{
  while (send(link, report, sizeof *report, MSG_NOSIGNAL) < 0 && errno == EINTR) { }
}

_Noreturn void keeper_give_up(const struct plan *plan, const char *verb, const char *object)
{
  struct report report = { .kind = REPORT_FAILED, .failure.stage = STAGE_SET_UP };
  failure_note(&report.failure, verb, object);
  tell(plan->link, &report);
  _exit(0);
}

void keeper_take_places(const struct plan *plan)
{
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, NULL);
  prctl(PR_SET_NAME, "keeper");
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  setsid();
  if (prctl(PR_SET_CHILD_SUBREAPER, 1) < 0) keeper_give_up(plan, "become subreaper of", "the run");
  const bool aside = plan->start->aside;
  int input = aside ? -1 : plan->streams[0];
  if (input < 0 && (input = open("/dev/null", O_RDONLY | O_CLOEXEC)) < 0) keeper_give_up(plan, "open", "/dev/null");
  if (dup2(input, 0) < 0 || dup2(plan->streams[1], 1) < 0 || dup2(plan->streams[2], 2) < 0) keeper_give_up(plan, "place", "stdio");
  struct fds_kept kept = { .fds = { plan->link }, .count = 1 };
  for (size_t i = 0; i < plan->warden->join_count; i++) kept.fds[kept.count++] = plan->warden->joins[i].fd;
  if (plan->warden->rules.given) kept.fds[kept.count++] = plan->warden->rules.fd;
  if (plan->start->layers && plan->warden->layers >= 0) kept.fds[kept.count++] = plan->warden->layers;
  /* The program gives these the numbers that they are to have: until it has joined its groups others may be in their place. */
  if (aside) {
    kept.fds[kept.count++] = plan->streams[0];
    kept.fds[kept.count++] = plan->streams[ENDS_ASIDE];
  }
  if (fds_close_all_but(&kept) < 0) keeper_give_up(plan, "close", "descriptors");
}

static void close_what_programs_need(const struct plan *plan)
{
  /* A terminal that nobody holds would look like the end of its output; a program may close it and open it again. */
  for (int fd = plan->start->terminal ? 1 : 0; fd < 3; fd++) close(fd);
  for (size_t i = 0; i < plan->warden->join_count; i++) close(plan->warden->joins[i].fd);
  if (plan->warden->rules.given) close(plan->warden->rules.fd);
  if (plan->start->layers && plan->warden->layers >= 0) close(plan->warden->layers);
  if (!plan->start->aside) return;
  close(plan->streams[0]);
  close(plan->streams[ENDS_ASIDE]);
}

/* The keeper lives as long as anything of the run does; what the program was told, it need not know, nor its memory hold. */
static void forget(const struct plan *plan)
{
  start_free(plan->start);
#ifdef __GLIBC__
  /* In a liner's first process nearly all memory is shared with whoever made it, and trimming it would copy it. */
  if (!plan->liner) malloc_trim(0);
#endif
}

/* The program's next word; false when none will come, because it runs or has died. */
static bool hear(int status, struct failure *word)
{
  ssize_t got;
  while ((got = read(status, word, sizeof *word)) < 0 && errno == EINTR) { }
  return got == (ssize_t)sizeof *word;
}

static _Noreturn void tell_failure(const struct plan *plan, struct report *report)
{
  report->kind = REPORT_FAILED;
  waitpid(report->pid, NULL, 0);
  tell(plan->link, report);
  _exit(0);
}

/* Returns once the program runs, or died on the way without a word (then its ending tells). */
static void await_exec(const struct plan *plan, int status, pid_t program)
{
  struct report report = { .kind = REPORT_STARTED, .pid = program };
  if (hear(status, &report.failure)) tell_failure(plan, &report);
  tell(plan->link, &report);
}

/* A program that could not even say why it failed, for want of write(2), exits with the errno. One that was killed is told by its ending. */
static void judge_silence(const struct plan *plan, pid_t program)
{
  siginfo_t info = { 0 };
  while (waitid(P_PID, (id_t)program, &info, WEXITED | WNOWAIT) < 0 && errno == EINTR) { }
  if (info.si_code != CLD_EXITED) return;
  struct report report = { .pid = program, .failure.stage = STAGE_SET_UP };
  errno = info.si_status;
  failure_note(&report.failure, "wait at", "the gate");
  tell_failure(plan, &report);
}

/* With what the program is to become, where it was not told before; that is not for the keeper to keep. */
static void hand_on_release(int link, int status)
{
  uint8_t word[START_TOLD_MOST];
  ssize_t got;
  while ((got = recv(link, word, sizeof word, 0)) < 0 && errno == EINTR) { }
  /* A warden that is gone opens no gate; with this end of it closed, the program ends too. */
  if (got <= 0) _exit(1);
  send(status, word, (size_t)got, MSG_NOSIGNAL);
  explicit_bzero(word, (size_t)got);
}

/* True when the program was released; false when it was killed before. */
static bool pass_gate(const struct plan *plan, int status, pid_t program)
{
  struct report report = { .kind = REPORT_GATED, .pid = program };
  struct pollfd ends[] = { { .fd = status, .events = POLLIN }, { .fd = plan->link, .events = POLLIN } };
  bool heard = hear(status, &report.failure);
  if (heard && report.failure.stage == AT_GATE) {
    tell(plan->link, &report);
    while (poll(ends, 2, -1) < 0 && errno == EINTR) { }
    if (!ends[0].revents) {
      hand_on_release(plan->link, status);
      return true;
    }
    heard = hear(status, &report.failure);
  }
  if (heard) tell_failure(plan, &report);
  judge_silence(plan, program);
  return false;
}

static uint64_t microseconds(const struct timeval *time)
{
  return (uint64_t)time->tv_sec * 1000000 + (uint64_t)time->tv_usec;
}

/* The usage of a dead child holds that of all whom it waited for; whoever was left to the keeper is added here. */
static void add_usage(struct ending *sum, const struct rusage *usage)
{
  enum { BLOCK = 512 };
  uint64_t peak_bytes = (uint64_t)usage->ru_maxrss * 1024;
  sum->user_us += microseconds(&usage->ru_utime);
  sum->system_us += microseconds(&usage->ru_stime);
  sum->read_bytes += (uint64_t)usage->ru_inblock * BLOCK;
  sum->written_bytes += (uint64_t)usage->ru_oublock * BLOCK;
  if (peak_bytes > sum->peak_bytes) sum->peak_bytes = peak_bytes;
}

/* There is room for few: none is held for what the program left behind. Of a run without one nothing has this number any more. */
static void let_go_of_terminal(void)
{
  close(0);
}

static void tell_ending(int link, const siginfo_t *info, const struct ending *used)
{
  struct report report = { .kind = REPORT_EXITED, .pid = info->si_pid, .ending = *used };
  report.ending.kind = info->si_code == CLD_EXITED ? 0 : 1;
  report.ending.code = (uint32_t)info->si_status;
  tell(link, &report);
  char answer;
  while (recv(link, &answer, 1, 0) < 0 && errno == EINTR) { }
}

/* Until no child is left; of a liner only until its program has ended, for whatever is left ends with the liner. */
static void reap(const struct plan *plan, pid_t program)
{
  struct ending used = { 0 };
  for (;;) {
    siginfo_t info = { 0 };
    struct rusage usage = { 0 };
    /* glibc's waitid has no place for the usage. */
    if (syscall(SYS_waitid, P_ALL, 0, &info, WEXITED | WNOWAIT | __WALL, &usage) < 0) {
      if (errno == EINTR) continue;
      return;
    }
    add_usage(&used, &usage);
    if (info.si_pid == program) {
      let_go_of_terminal();
      tell_ending(plan->link, &info, &used);
      if (plan->liner) return;
    }
    waitpid(info.si_pid, NULL, __WALL);
  }
}

int keeper_keep(const struct plan *plan)
{
  int status[2];
  const bool gate = plan->start->gate;
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, status) < 0) keeper_give_up(plan, "make", "status socket");
  pid_t program = fork();
  if (program < 0) keeper_give_up(plan, "fork", "the program");
  if (program == 0) {
    close(status[0]);
    return status[1];
  }
  close(status[1]);
  close_what_programs_need(plan);
  forget(plan);
  caps_clear_ambient();
  caps_set(0);
  if (!gate || pass_gate(plan, status[0], program)) await_exec(plan, status[0], program);
  close(status[0]);
  reap(plan, program);
  _exit(0);
}
