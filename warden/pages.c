#include "pages.h"

#include <sys/mman.h>

uint8_t *pages_map(size_t length)
{
  uint8_t *bytes = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (bytes == MAP_FAILED) return NULL;
  madvise(bytes, length, MADV_DONTFORK);
  return bytes;
}

void pages_unmap(uint8_t *bytes, size_t length)
{
  if (bytes) munmap(bytes, length);
}

void pages_forget(uint8_t *bytes, size_t from, size_t length)
{
  const size_t page = 4096, begin = from / page * page, end = (from + length) / page * page;
  if (end > begin) madvise(bytes + begin, end - begin, MADV_DONTNEED);
}

uint8_t *pages_resize(uint8_t *bytes, size_t from, size_t to)
{
  if (!bytes) return pages_map(to);
  uint8_t *moved = mremap(bytes, from, to, MREMAP_MAYMOVE);
  return moved == MAP_FAILED ? NULL : moved;
}
