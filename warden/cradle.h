/* The cradle: a process of the cell beside the warden, without any capability, that makes liners. And how the warden asks it, or a zygote. */
#ifndef GLOVEBOX_CRADLE_H
#define GLOVEBOX_CRADLE_H

#include "ends.h"
#include "warden.h"

/* While the warden can still mount, and is under no filter. Dies when no liner can be made here. */
void cradle_fork(struct warden *warden);
/* The filter has come. */
void cradle_configure(struct warden *warden);
/* A program in a liner, or a zygote: its number, or 0 with errno and in `object` what could not be had. */
pid_t cradle_order(struct warden *warden, const struct start *start, const struct ends *ends, const char **object);
/* One that was reaped may have been one of those that are asked. */
void cradle_bury(struct warden *warden, pid_t pid);

#endif
