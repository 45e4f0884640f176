/* Connections to what listens in the cell; see connection.c for their life. */
#ifndef GLOVEBOX_CONNECTION_H
#define GLOVEBOX_CONNECTION_H

#include "warden.h"

/* Takes CONNECT up. What fails is answered by FAILED; it never ends the cell. */
void connection_begin(struct warden *warden, uint32_t id, uint16_t port);
/* Whether its socket is still on the way. */
bool connection_is_dialing(const struct run *run);
/* That socket has become ready, or has failed. */
void connection_advance(struct warden *warden, struct run *run);
/* Gives up on those that take too long. */
void connection_tick(struct warden *warden);
/* Milliseconds until one may have taken too long, or -1. */
int connection_wait_ms(const struct warden *warden);
/* Something went wrong with it. The first that did is told. */
void connection_note(struct run *run, int error);
/* Nothing more comes from the other side, and nothing can be said to it. */
void connection_break(struct warden *warden, struct run *run, int error);
/* Ends it at once, whatever waits. */
void connection_abort(struct warden *warden, struct run *run);
/* Says CLOSED once both directions are over. */
void connection_settle(struct warden *warden, struct run *run);

#endif
