/* The names in a folder, sorted by their bytes, a bounded number at a time: of a folder that holds more, the smallest after a given one. */
#ifndef GLOVEBOX_FILES_NAMES_H
#define GLOVEBOX_FILES_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { NAMES_BYTES_MOST = 1024 * 1024, NAMES_NAME_ROOM = 256 };

struct names {
  char *text;
  size_t used, text_room;
  uint32_t *starts; /* of each name in `text` */
  size_t count, starts_room;
  bool more;                   /* the folder holds others beyond `limit` */
  char limit[NAMES_NAME_ROOM];
};

/* Reads the names in the folder open at `fd` that come after `after` (all, when it is empty). NULL, and errno tells why. */
struct names *names_read(int fd, const char *after);
const char *names_at(const struct names *names, size_t index);
/* What it takes in memory. */
size_t names_size(const struct names *names);
void names_free(struct names *names);

#endif
