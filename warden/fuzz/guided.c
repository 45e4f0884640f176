/* The same for a fuzzer that is led by what it covers (libFuzzer): inputs of the kind that GLOVEBOX_FUZZ_KIND says. */
#include <stdlib.h>
#include <string.h>

#include "tries.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
  const char *kind = getenv("GLOVEBOX_FUZZ_KIND");
  struct counts counts = { 0 };
  uint8_t *own = malloc(length ? length : 1);
  if (length) memcpy(own, bytes, length);
  try_input(kind ? (enum input_kind)atoi(kind) : INPUT_FRAMES, own, length, &counts);
  free(own);
  return 0;
}
