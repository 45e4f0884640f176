/* The loop: one poll over the channel, the keepers and the pipes. */
#ifndef GLOVEBOX_MUX_H
#define GLOVEBOX_MUX_H

#include "warden.h"

/* Says HELLO and serves until the cell is over; `fatal` then says whether the engine broke the protocol. */
void mux_serve(struct warden *warden);

#endif
