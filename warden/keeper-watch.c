/*
 * From the fork of the program to the end of its run. What is here is also all of a keeper that is a program of its own (keeper-alone.c), which has no libc: it
 * calls nothing but what is there for it.
 */
#include "keeper-watch.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "report.h"
#include "start.h"

static void tell(int link, const struct report *report)
{
  while (send(link, report, sizeof *report, MSG_NOSIGNAL) < 0 && errno == EINTR) { }
}

/* The program's next word; false when none will come, because it runs or has died. */
static bool hear(int status, struct failure *word)
{
  ssize_t got;
  while ((got = read(status, word, sizeof *word)) < 0 && errno == EINTR) { }
  return got == (ssize_t)sizeof *word;
}

static _Noreturn void tell_failure(const struct watch *watch, struct report *report)
{
  report->kind = REPORT_FAILED;
  waitpid(report->pid, NULL, 0);
  tell(watch->link, report);
  _exit(0);
}

/* Returns once the program runs, or died on the way without a word (then its ending tells). */
static void await_exec(const struct watch *watch)
{
  struct report report = { .kind = REPORT_STARTED, .pid = watch->program };
  if (hear(watch->status, &report.failure)) tell_failure(watch, &report);
  tell(watch->link, &report);
}

/* A program that could not even say why it failed, for want of write(2), exits with the errno. One that was killed is told by its ending. */
static void judge_silence(const struct watch *watch)
{
  siginfo_t info = { 0 };
  while (waitid(P_PID, (id_t)watch->program, &info, WEXITED | WNOWAIT) < 0 && errno == EINTR) { }
  if (info.si_code != CLD_EXITED) return;
  struct report report = { .pid = watch->program, .failure.stage = STAGE_SET_UP };
  errno = info.si_status;
  failure_note(&report.failure, "wait at", "the gate");
  tell_failure(watch, &report);
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
static bool pass_gate(const struct watch *watch)
{
  struct report report = { .kind = REPORT_GATED, .pid = watch->program };
  struct pollfd ends[] = { { .fd = watch->status, .events = POLLIN }, { .fd = watch->link, .events = POLLIN } };
  bool heard = hear(watch->status, &report.failure);
  if (heard && report.failure.stage == AT_GATE) {
    tell(watch->link, &report);
    while (poll(ends, 2, -1) < 0 && errno == EINTR) { }
    if (!ends[0].revents) {
      hand_on_release(watch->link, watch->status);
      return true;
    }
    heard = hear(watch->status, &report.failure);
  }
  if (heard) tell_failure(watch, &report);
  judge_silence(watch);
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
static void reap(const struct watch *watch)
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
    if (info.si_pid == watch->program) {
      let_go_of_terminal();
      tell_ending(watch->link, &info, &used);
      if (watch->liner) return;
    }
    waitpid(info.si_pid, NULL, __WALL);
  }
}

_Noreturn void keeper_watch(const struct watch *watch)
{
  if (!watch->gate || pass_gate(watch)) await_exec(watch);
  close(watch->status);
  reap(watch);
  _exit(0);
}
