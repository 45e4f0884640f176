/* A program on its way to its gate. */
#ifndef GLOVEBOX_PROGRAM_H
#define GLOVEBOX_PROGRAM_H

#include "keeper.h"
#include "report.h"
#include "standing.h"

/* What is open to some beyond 0, 1 and 2. */
enum { LAYERS_FD = 3, ASIDE_IN_FD = 3, ASIDE_OUT_FD = 4 };

struct child {
  const struct warden *warden;
  struct start *start;
  struct rules rules; /* a copy: its descriptor may have to make way */
  int status;
  uint32_t mark; /* its keeper's */
  const int *streams; /* as its keeper has them */
  struct standing standing; /* as it was when nobody else could change it */
};

static inline struct child program_child(const struct plan *plan, int status)
{
  return (struct child){ .warden = plan->warden, .start = plan->start, .rules = plan->warden->rules, .status = status, .mark = plan->mark, .streams = plan->streams };
}

/* Stdio is in place. Returns when all is done and it was let pass; otherwise says on its status why not, and ends. */
void program_reach_gate(struct child *child, const struct plan *plan);
/* Says why it did not become the program, and ends. */
_Noreturn void program_fail(const struct child *child, struct failure *failure);

#endif
