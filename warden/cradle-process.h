/* The cradle's own process. */
#ifndef GLOVEBOX_CRADLE_PROCESS_H
#define GLOVEBOX_CRADLE_PROCESS_H

#include "warden.h"

_Noreturn void cradle_become(const struct warden *warden, int socket);

#endif
