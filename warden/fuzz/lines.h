/* The fuzzer's inputs of words: command lines, requests of command lines, lines of a filter. */
#ifndef GLOVEBOX_FUZZ_LINES_H
#define GLOVEBOX_FUZZ_LINES_H

#include "inputs.h"

void lines_seed(struct input *input, struct chance *chance, enum input_kind kind);

#endif
