/* The fuzzer's inputs for the file worker: payloads of its requests, archives, and what is sent to it. */
#ifndef GLOVEBOX_FUZZ_FILES_H
#define GLOVEBOX_FUZZ_FILES_H

#include "inputs.h"

/* Well-formed seeds; the caller mutates them. */
void files_request_seed(struct input *input, struct chance *chance);
void files_archive_seed(struct input *input, struct chance *chance);
void files_stream_seed(struct input *input, struct chance *chance);

/* Feed the parsers and check what they promise: whether the input was well-formed. */
int files_try_request(const uint8_t *bytes, size_t length);
int files_try_archive(const uint8_t *bytes, size_t length);
/* Taken by turns as a worker takes requests and content, and compared with what it says. */
int files_try_stream(const uint8_t *bytes, size_t length);

#endif
