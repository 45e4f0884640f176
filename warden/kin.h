/* Whom a run has, where the kernel gives no subreapers: all who bear its mark. See kin.c. */
#ifndef GLOVEBOX_KIN_H
#define GLOVEBOX_KIN_H

#include "arguments.h"
#include "warden.h"

/* Before anything is dropped. What is opened is closed on exec; dies where it cannot be. */
struct kin kin_open(const struct arguments *arguments);
/* Of a run; 0 where runs need none. */
uint32_t kin_mark(const struct warden *warden, uint32_t run);
/* Strikes every process of the runs that are to die, but for keepers, and notes of each run how many lived. False when nobody could look. */
bool kin_strike(struct warden *warden);
/* Whether processes of it are left, its keeper apart; false where runs have no marks. */
bool kin_is_left(struct warden *warden, const struct run *run);
/* Of the runs whose keepers are gone, notes those of which nobody is left any more. */
void kin_settle(struct warden *warden);

#endif
