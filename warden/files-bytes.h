/* Bytes from one open file to another. Failures are told by errno. */
#ifndef GLOVEBOX_FILES_BYTES_H
#define GLOVEBOX_FILES_BYTES_H

#include <stdbool.h>
#include <stddef.h>

bool write_bytes(int fd, const void *bytes, size_t length);
/* From where both stand to the end of `from`. */
bool copy_bytes(int from, int to);
/* That many, no more than 64 KiB at a time; false also when fewer come. */
bool copy_some(int from, int to, size_t length);
/* Of a descriptor that may have been made non-blocking by whoever shares it. */
bool files_wait(int fd, short events);

#endif
