/* The warden's own seccomp filter, which every guest inherits below the one that CONFIGURE brings. */
#ifndef GLOVEBOX_SELF_FILTER_H
#define GLOVEBOX_SELF_FILTER_H

#include <stdbool.h>

struct self_filter {
  bool guests_share_id; /* they may then also not change the limits of other processes, by which they could end the warden, or who keeps them */
  bool makes_liners;    /* may make exactly the namespaces of one, and mount in them */
};

/* 0, or -1 with errno. Needs no_new_privs. */
int self_filter_load(const struct self_filter *wanted);

#endif
