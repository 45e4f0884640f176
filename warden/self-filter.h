/* The warden's own seccomp filter, which every guest inherits below the one that CONFIGURE brings. */
#ifndef GLOVEBOX_SELF_FILTER_H
#define GLOVEBOX_SELF_FILTER_H

/* 0, or -1 with errno. Needs no_new_privs. */
int self_filter_load(void);

#endif
