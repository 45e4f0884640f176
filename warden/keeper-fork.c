#include <unistd.h>

#include "keeper.h"

pid_t keeper_fork(struct plan *plan, const struct ends *ends)
{
  for (int stream = 0; stream < ENDS_STREAMS; stream++) plan->streams[stream] = ends->streams[stream][ENDS_THEIRS];
  plan->link = ends->link[ENDS_THEIRS];
  pid_t keeper = fork();
  if (keeper) return keeper;
  keeper_take_places(plan);
  become_program(plan, keeper_keep(plan));
}
