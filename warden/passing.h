/* What comes in bulk for a file worker, from the channel into its pipe without being copied. */
#ifndef GLOVEBOX_PASSING_H
#define GLOVEBOX_PASSING_H

#include "warden.h"

/* The frame at the inbox's head has begun and not ended: takes it out of there if the rest of it may pass. */
void passing_begin(struct warden *warden, const struct frame *frame);
static inline bool passing_is_under_way(const struct warden *warden)
{
  return warden->inbox.passing.left > 0;
}
/* Takes what the channel has of it. Sets `ending` or `fatal` when the cell is over. */
void passing_hear(struct warden *warden);
/* Whether the channel waits for room in a pipe, and whether in this run's. */
bool passing_is_held_up(const struct warden *warden);
bool passing_waits_for(const struct warden *warden, const struct run *run);
/* Until it has waited long enough; -1: it does not wait. */
int passing_wait_ms(const struct warden *warden);
void passing_tick(struct warden *warden);

#endif
