/* Carrying out the engine's frames. */
#ifndef GLOVEBOX_ENGINE_H
#define GLOVEBOX_ENGINE_H

#include "warden.h"

/* Reads what the channel has and carries out each whole frame. Sets `ending` or `fatal` when the cell is over. */
void engine_hear(struct warden *warden);
/* Carries out frames that are already here, as far as their answers fit. */
void engine_work(struct warden *warden);
bool engine_has_work(const struct warden *warden);
/* Whether the answers to further frames would fit. */
bool engine_is_heard(const struct warden *warden);

#endif
