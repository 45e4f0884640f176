/* From the channel to the program's input pipe. */
#ifndef GLOVEBOX_FEED_H
#define GLOVEBOX_FEED_H

#include "warden.h"

/* Takes one STDIN frame. NULL, or why it is malformed. */
const char *feed_take(struct warden *warden, struct run *run, const struct frame *frame);
/* Hands on what the pipe takes, and gives its credit back. */
void feed_pump(struct warden *warden, struct run *run);
/* The program reads no more: drops what waits, with its credit. */
void feed_close(struct warden *warden, struct run *run);

#endif
