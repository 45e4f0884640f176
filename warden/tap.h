/* From the program's output to the channel. */
#ifndef GLOVEBOX_TAP_H
#define GLOVEBOX_TAP_H

#include "warden.h"

/* Whether bytes may be read from this pipe now. */
bool tap_is_open(const struct warden *warden, const struct tap *tap);
/* Reads one chunk into one OUTPUT; at the end of the stream the empty one. `stream` is 1, 2 or, of an aside, 3. */
void tap_read(struct warden *warden, struct run *run, int stream);
/* The program has exited: what is in the pipe now is the last of it. */
void tap_drain(struct tap *tap);

#endif
