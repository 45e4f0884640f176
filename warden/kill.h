/* Ending runs with all their descendants; see kill.c for how. */
#ifndef GLOVEBOX_KILL_H
#define GLOVEBOX_KILL_H

#include "warden.h"

void kill_run(struct warden *warden, struct run *run);
/* The program of a run in a liner has shown its number: a kill that came before is done now. */
void kill_shown(struct run *run);
/* Its keeper was lost before its time: whatever it has left dies. */
void kill_lost(struct warden *warden, struct run *run);
/* From now on whatever lands at the warden dies. */
void kill_strays(struct warden *warden);
/* One pass, if one is due. Never waits. */
void kill_tick(struct warden *warden);
/* Milliseconds until the next pass, or -1 when none is needed. */
int kill_wait_ms(const struct warden *warden);
/* Before a warden that is not pid 1 exits: waits until no descendant is left. */
void kill_all_descendants(struct warden *warden);

#endif
