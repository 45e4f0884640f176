/* The two processes of a run: the keeper, and the program it forks. */
#ifndef GLOVEBOX_KEEPER_H
#define GLOVEBOX_KEEPER_H

#include <stdbool.h>

#include "ends.h"
#include "start.h"
#include "warden.h"

struct plan {
  const struct warden *warden;
  struct start *start; /* freed by the keeper once the program has its copy */
  int streams[ENDS_STREAMS]; /* the program's ends; -1 where there is none */
  int link;
};

/* Forks the keeper, with their side of the ends. -1 with errno. */
pid_t keeper_fork(struct plan *plan, const struct ends *ends);

/* Runs in the program's process: stdio is in place. Says on `status` why it did not become the program, and waits there at its gate. */
_Noreturn void become_program(const struct plan *plan, int status);

#endif
