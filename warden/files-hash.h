/* SHA-256 of files. */
#ifndef GLOVEBOX_FILES_HASH_H
#define GLOVEBOX_FILES_HASH_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "files-frames.h"

/* Of a regular file, and what it is while it is read; a link is not followed, and nothing else is opened for long.
 * Of as many bytes as its size was then. False when it could not be read, or has fewer by now. */
bool hash_file(int folder, const char *name, struct stat *stat, uint8_t digest[FILES_HASH_LENGTH]);

#endif
