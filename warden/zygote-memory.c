/*
 * What a fork costs is the tables of its memory: each page that was written to is entered there, and at the end taken out again. Pages of 2 MiB are one entry until
 * something is written to, and afterwards still go by many at once.
 */
#include "zygote-memory.h"

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* Not every C library has it. */
extern __attribute__((weak)) int malloc_trim(size_t pad);

enum { MORE_THAN_FREE = 16 << 20, COLLAPSE = 25 /* MADV_COLLAPSE */ };
static const uintptr_t LARGE = 2 << 20;

/* A large page, at a place where the kernel can make it one. */
static uint8_t *large_page(void)
{
  uint8_t *room = mmap(NULL, 2 * LARGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (room == MAP_FAILED) return NULL;
  uint8_t *page = (uint8_t *)(((uintptr_t)room + LARGE - 1) / LARGE * LARGE), *end = room + 2 * LARGE;
  if (page > room) munmap(room, (size_t)(page - room));
  munmap(page + LARGE, (size_t)(end - page - LARGE));
  madvise(page, LARGE, MADV_HUGEPAGE);
  return page;
}

struct gathering {
  struct arenas usual;
  uint8_t *next, *end; /* of the page that is not full */
};

static void *take(void *context, size_t size)
{
  struct gathering *gathering = context;
  const struct arenas *usual = &gathering->usual;
  if (size > LARGE) return usual->take(usual->context, size);
  if ((size_t)(gathering->end - gathering->next) < size) {
    uint8_t *page = large_page();
    if (!page) return usual->take(usual->context, size);
    gathering->next = page;
    gathering->end = page + LARGE;
  }
  gathering->next += size;
  return gathering->next - size;
}

static void give(void *context, void *arena, size_t size)
{
  const struct arenas *usual = &((struct gathering *)context)->usual;
  usual->give(usual->context, arena, size);
}

struct arenas memory_gather(const struct arenas *usual)
{
  struct gathering *gathering = calloc(1, sizeof *gathering);
  if (!gathering) return *usual;
  gathering->usual = *usual;
  return (struct arenas){ .context = gathering, .take = take, .give = give };
}

struct arenas memory_usual(const struct arenas *arenas)
{
  return arenas->take == take ? ((struct gathering *)arenas->context)->usual : *arenas;
}

/* That of malloc: what is still small in it becomes large, as far as this kernel does that. */
static void enlarge_heap(void)
{
  FILE *maps = fopen("/proc/self/maps", "re");
  char line[512];
  uintptr_t from, to;
  while (maps && fgets(line, sizeof line, maps)) {
    if (!strstr(line, "[heap]") || sscanf(line, "%" SCNxPTR "-%" SCNxPTR, &from, &to) != 2) continue;
    from = (from + LARGE - 1) / LARGE * LARGE;
    to = to / LARGE * LARGE;
    if (from < to) madvise((void *)from, to - from, COLLAPSE);
  }
  if (maps) fclose(maps);
}

/*
 * What was freed is given back. What is left of it waits to be sorted, which whoever allocates next does for all of it: that is not to be every fork, for each
 * would copy what it writes to.
 */
void memory_tidy(void)
{
  if (malloc_trim) {
    malloc_trim(0);
    /* A pair that a compiler sees it leaves out. */
    void *volatile more = malloc(MORE_THAN_FREE);
    free(more);
  }
  enlarge_heap();
}
