/* The fuzzer's inputs: well-formed seeds, and mutations of them, from one reproducible source of chance. */
#ifndef GLOVEBOX_FUZZ_INPUTS_H
#define GLOVEBOX_FUZZ_INPUTS_H

#include <stddef.h>
#include <stdint.h>

enum { INPUT_MOST = 8192 };

struct input {
  uint8_t bytes[INPUT_MOST];
  size_t length;
};

struct chance {
  uint64_t state;
};

uint32_t chance_below(struct chance *chance, uint32_t bound);
/* A seed of the given kind (any number will do), then mutated a few times. */
void input_make(struct input *input, struct chance *chance, uint32_t kind);
/*
 * Streams of frames; payloads of START; lines of /proc/PID/stat; payloads of RULES; what comes with RELEASE; requests to the file worker; archives; what is sent to a
 * worker; command lines of the warden and of the launcher; requests to a launcher that stays; lines that a filter is compiled of.
 */
enum input_kind {
  INPUT_FRAMES,
  INPUT_START,
  INPUT_STAT,
  INPUT_RULES,
  INPUT_TOLD,
  INPUT_FILES_REQUEST,
  INPUT_FILES_ARCHIVE,
  INPUT_FILES_STREAM,
  INPUT_WARDEN_WORDS,
  INPUT_LAUNCHER_WORDS,
  INPUT_LAUNCHER_REQUESTS,
  INPUT_FILTER_LINES,
  INPUT_KINDS,
};

#endif
