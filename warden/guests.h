/* What programs want of the world, taken in at the warden's doors; see guests.c. */
#ifndef GLOVEBOX_GUESTS_H
#define GLOVEBOX_GUESTS_H

#include "warden.h"

/* The cell's own doors, as the plan says. Dies when they cannot be had. */
void guests_open_doors(struct warden *warden);
/* Whether anything may be taken in at this door now. */
bool guests_may_enter(const struct warden *warden, const struct door *door);
/* Something waits at a door, which is the cell's own or the liner's. */
void guests_serve(struct warden *warden, const struct run *liner, const struct door *door);
/* Opens doors again that were shut for a moment. */
void guests_tick(struct warden *warden);
/* Milliseconds until doors that were shut are looked at again, or -1. */
int guests_wait_ms(const struct warden *warden);
/* Takes LISTEN and ANSWER. NULL, or why they are malformed. */
const char *guests_listen(struct warden *warden, const struct frame *frame);
const char *guests_answer(struct warden *warden, const struct frame *frame);
/* A guest's connection is forgotten. */
void guests_leave(struct warden *warden, const struct run *run);
/* What a liner's first process handed over: kept for as long as the run is; otherwise closed, and why. NULL: it came without its descriptors. */
int guests_keep_doors(struct run *liner, const struct doors *doors);
/* The liner is over: nobody is there any more to be answered. */
void guests_forget_doors(struct warden *warden, struct run *liner);

#endif
