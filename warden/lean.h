/* Liners whose keeper is a program of its own instead of a copy of whoever makes them. */
#ifndef GLOVEBOX_LEAN_H
#define GLOVEBOX_LEAN_H

#include "brood.h"

/* Makes ready what its liners need, once. NULL where the kernel executes no such keeper: then they are made by copies, as the cradle's are. */
struct lean *lean_make(void);
/* Makes the liner that `plan` is for. -1 in the caller, and in the program its end of the status. */
int lean_hatch(struct brood *brood, struct plan *plan);

#endif
