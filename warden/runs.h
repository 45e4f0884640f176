/* The life of runs: what keepers tell, what is owed to the engine, and when a run is forgotten. */
#ifndef GLOVEBOX_RUNS_H
#define GLOVEBOX_RUNS_H

#include "warden.h"

struct run *runs_find(const struct warden *warden, uint32_t id);
/* Reads what the keeper sent. */
void runs_hear(struct warden *warden, struct run *run);
/* Reaps every child of the warden that has ended. */
void runs_reap(struct warden *warden);
/* Sends what has become due (ends of streams, EXITED, GONE) and forgets the runs of which nothing is left. */
void runs_settle(struct warden *warden);

#endif
