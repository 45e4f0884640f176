/* Capability sets by raw system calls, as 64-bit masks. */
#ifndef GLOVEBOX_CAPS_H
#define GLOVEBOX_CAPS_H

#include <stdbool.h>
#include <stdint.h>

#define CAPS_BIT(capability) (UINT64_C(1) << (capability))

/* The permitted set of this process. */
int caps_permitted(uint64_t *mask);
/* Permitted and effective become the mask, inheritable becomes empty. */
int caps_set(uint64_t mask);
int caps_clear_ambient(void);
/* Drops from the bounding set what the mask lacks. Touches nothing, and needs no privilege, when there is nothing to drop. */
int caps_bound(uint64_t mask);

#endif
