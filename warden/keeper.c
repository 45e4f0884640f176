/*
 * The keeper of one run. It holds no secrets and no descriptors but its link to the warden: it forks the program, says how that
 * went, says how the program ended, and reaps whatever the program left behind until nothing of the run remains.
 *
 * The program's zombie is kept until the warden has answered, so that the warden never signals a number that was given to another.
 */
#include "keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <malloc.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "caps.h"
#include "fds.h"
#include "keeper-watch.h"
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
  const gid_t mark = plan->mark;
  bool known = mark ? setgroups(1, &mark) == 0 : prctl(PR_SET_CHILD_SUBREAPER, 1) == 0;
  if (!known) keeper_give_up(plan, "catch what is left of", "the run");
  const bool aside = plan->start->aside;
  int input = aside ? -1 : plan->streams[0];
  if (input < 0 && (input = open("/dev/null", O_RDONLY | O_CLOEXEC)) < 0) keeper_give_up(plan, "open", "/dev/null");
  if (dup2(input, 0) < 0 || dup2(plan->streams[1], 1) < 0 || dup2(plan->streams[2], 2) < 0) keeper_give_up(plan, "place", "stdio");
  struct fds_kept kept = { .fds = { plan->link }, .count = 1 };
  for (size_t i = 0; i < plan->warden->join_count; i++) kept.fds[kept.count++] = plan->warden->joins[i].fd;
  if (plan->warden->rules.given) kept.fds[kept.count++] = plan->warden->rules.fd;
  if (plan->image) kept.fds[kept.count++] = plan->image;
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

int keeper_keep(const struct plan *plan)
{
  int status[2];
  struct watch watch = { .link = plan->link, .gate = plan->start->gate, .liner = plan->liner };
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, status) < 0) keeper_give_up(plan, "make", "status socket");
  watch.program = fork();
  if (watch.program < 0) keeper_give_up(plan, "fork", "the program");
  if (watch.program == 0) {
    close(status[0]);
    return status[1];
  }
  close(status[1]);
  watch.status = status[0];
  close_what_programs_need(plan);
  forget(plan);
  caps_clear_ambient();
  caps_set(0);
  keeper_watch(&watch);
}
