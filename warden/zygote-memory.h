/* The memory of a zygote, so that forks of it cost little. */
#ifndef GLOVEBOX_ZYGOTE_MEMORY_H
#define GLOVEBOX_ZYGOTE_MEMORY_H

#include <stddef.h>

/* As Python has its memory from the system. */
struct arenas {
  void *context;
  void *(*take)(void *context, size_t size);
  void (*give)(void *context, void *arena, size_t size);
};

/* Those that lie side by side in pages that are as large as they can be; they are given back in the usual way. */
struct arenas memory_gather(const struct arenas *usual);
/* As they were before. */
struct arenas memory_usual(const struct arenas *arenas);
/* Once, when all is there that forks are to have. */
void memory_tidy(void);

#endif
