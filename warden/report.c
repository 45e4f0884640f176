#include "report.h"

#include <errno.h>
#include <stddef.h>

static size_t append(struct failure *failure, size_t at, const char *words)
{
  while (*words && at + 1 < sizeof failure->text) failure->text[at++] = *words++;
  failure->text[at] = 0;
  return at;
}

void failure_note(struct failure *failure, const char *verb, const char *object)
{
  failure->error = (uint32_t)errno;
  append(failure, append(failure, append(failure, 0, verb), " "), object);
}
