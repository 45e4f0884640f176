/* A pipe of the worker's own, through which pages move instead of being copied. */
#ifndef GLOVEBOX_FILES_DUCT_H
#define GLOVEBOX_FILES_DUCT_H

#include <stddef.h>

enum { DUCT_PAGE = 4096, DUCT_ROOM = 64 * DUCT_PAGE };

struct duct {
  int in, out;
  size_t room; /* 0: there is none */
};

/* With these flags, and as wide as the kernel grants it; without room when that is not worth it. */
void duct_open(struct duct *duct, int flags);
/* Quiet when there is none. Leaves errno as it is. */
void duct_close(struct duct *duct);

#endif
