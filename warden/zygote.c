/*
 * What a zygote loads: an interpreter that was started once, and from which programs are forked, each into a liner of its own. It never runs anything that came
 * from a run. All that is asked of it and all that it does is here and in brood.c; the interpreter goes on only in the program.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "brood.h"
#include "lean.h"
#include "program.h"
#include "zygote.h"

int zygote_serve(int socket, char ***argv, char ***envp)
{
  struct brood *brood = brood_make(socket);
  struct start *start = calloc(1, sizeof *start);
  struct plan *plan = calloc(1, sizeof *plan);
  sigset_t all;
  sigfillset(&all);
  if (!brood || !start || !plan || prctl(PR_SET_DUMPABLE, 0) < 0 || sigprocmask(SIG_SETMASK, &all, NULL) < 0) return -1;
  prctl(PR_SET_NAME, "zygote");
  brood->lean = lean_make();
  if (brood->lean) brood->hatch = lean_hatch;
  int status = brood_serve(brood, plan, start);
  struct child child = program_child(plan, status);
  program_reach_gate(&child, plan);
  /* As an execve would: it is the guest's now and bears its name, and what says that it runs is this end. */
  const char *last = strrchr(start->argv[0], '/');
  prctl(PR_SET_NAME, last ? last + 1 : start->argv[0]);
  prctl(PR_SET_DUMPABLE, 1);
  close(child.status);
  *argv = start->argv;
  *envp = start->envp;
  return 0;
}

/* An interrupt that nothing handled ends an interpreter by its signal, once it has put everything in order. */
_Noreturn void zygote_exit(int status)
{
  if (status != ZYGOTE_INTERRUPTED) exit(status);
  signal(SIGINT, SIG_DFL);
  kill(getpid(), SIGINT);
  exit(128 + SIGINT);
}
