/* From the channel to the program's input. */
#ifndef GLOVEBOX_FEED_H
#define GLOVEBOX_FEED_H

#include "warden.h"

/* Takes one STDIN frame. NULL, or why it is malformed. */
const char *feed_take(struct warden *warden, struct run *run, const struct frame *frame);
/* Whether something is still to be handed on: bytes, or their end. */
bool feed_is_waiting(const struct feed *feed);
/* Whether anything may be written to it now. */
bool feed_is_served(const struct run *run);
/* Whether what is for this run may be moved into its pipe, past everything here, once nothing waits here. */
bool feed_may_pass(struct run *run);
/* So many bytes were. */
void feed_passed(struct warden *warden, struct run *run, size_t bytes);
/* Hands on what the other end takes, and gives its credit back. */
void feed_pump(struct warden *warden, struct run *run);
/* At the end of a round: tells the engine what was handed on, if it may wait for that. */
void feed_settle(struct warden *warden, struct run *run);
/* The other end was seen to be gone. */
void feed_lose(struct warden *warden, struct run *run);
/* The program reads no more: drops what waits, with its credit. */
void feed_close(struct warden *warden, struct run *run);

#endif
