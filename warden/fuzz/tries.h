/* What the parsers promise, tried with one input. Breaking a promise aborts. */
#ifndef GLOVEBOX_FUZZ_TRIES_H
#define GLOVEBOX_FUZZ_TRIES_H

#include <stddef.h>
#include <stdint.h>

#include "inputs.h"

struct counts {
  uint64_t whole, malformed;
};

/* `bytes` must be of exactly this length, so that one byte too far is seen. */
void try_input(enum input_kind kind, const uint8_t *bytes, size_t length, struct counts *counts);

/* Command lines, with a NUL behind each word: of the warden, and of the launcher. Whether they are understood. */
int words_try_warden(const uint8_t *bytes, size_t length);
int words_try_launcher(const uint8_t *bytes, size_t length);
/* What a launcher that stays is told by its owner. Nothing is launched. */
int serve_try(const uint8_t *bytes, size_t length);
/* The lines that a filter is compiled of. */
int filter_try(const uint8_t *bytes, size_t length);

#endif
