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
  const struct doors_plan *doors; /* of a liner; NULL: none */
  bool liner; /* the keeper is the first process of the program's liner */
  uint32_t mark; /* the group that its processes are known by; 0: it catches them itself */
  int image; /* what that then executes; 0: nothing */
};

/* Forks the keeper, with their side of the ends. -1 with errno. */
pid_t keeper_fork(struct plan *plan, const struct ends *ends);

/* In the keeper's process: its own session, stdio where the program is to have it, and no descriptor that it has no use for. */
void keeper_take_places(const struct plan *plan);
/* Forks the program, and returns only there: with its end of the status. The keeper itself goes on until it is done. */
int keeper_keep(const struct plan *plan);
/* Tells the warden why there will be no program, and ends. */
_Noreturn void keeper_give_up(const struct plan *plan, const char *verb, const char *object);

/* Runs in the program's process: stdio is in place. Says on `status` why it did not become the program, and waits there at its gate. */
_Noreturn void become_program(const struct plan *plan, int status);

#endif
