/* The warden's own seccomp filter, which every guest inherits below the one that CONFIGURE brings. */
#ifndef GLOVEBOX_SELF_FILTER_H
#define GLOVEBOX_SELF_FILTER_H

#include <stdbool.h>

/*
 * 0, or -1 with errno. Needs no_new_privs. Where guests have the warden's own id they may also not change the limits of other processes, by
 * which they could end it.
 */
int self_filter_load(bool guests_share_id);

#endif
