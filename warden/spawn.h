/* Starting a run: pipes, keeper, and the first word of how it went. */
#ifndef GLOVEBOX_SPAWN_H
#define GLOVEBOX_SPAWN_H

#include "start.h"
#include "warden.h"

/* Takes START up. What fails is answered by FAILED; it never ends the cell. */
void spawn_run(struct warden *warden, uint32_t id, struct start *start);
/* Answers START by FAILED for a run of which nothing exists. The errno and text are in the failure. */
struct failure;
void spawn_refuse(struct warden *warden, uint32_t id, const struct failure *failure);

#endif
