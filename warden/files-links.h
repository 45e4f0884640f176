/* Which file was packed first under which name, for those that have several. Beyond its bounds a file is packed once for each of its names. */
#ifndef GLOVEBOX_FILES_LINKS_H
#define GLOVEBOX_FILES_LINKS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

enum { LINKS_MOST = 65536, LINKS_SLOTS = 2 * LINKS_MOST, LINKS_TEXT_MOST = 8 * 1024 * 1024 };

struct link_place {
  dev_t dev;
  ino_t ino;
  uint32_t text, length; /* length 0: free */
};

struct links {
  struct link_place *slots;
  size_t count;
  char *text;
  size_t used, room;
};

/* The name the file was first noted by, with its length; NULL when it is noted now. */
const char *links_note(struct links *links, const struct stat *stat, const char *name, size_t *length);
void links_free(struct links *links);

#endif
