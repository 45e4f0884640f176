/* What both sides of a tar archive know: ustar headers, with pax records where a field does not fit. */
#ifndef GLOVEBOX_TAR_FORMAT_H
#define GLOVEBOX_TAR_FORMAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

enum { TAR_BLOCK = 512, TAR_NAME_MOST = 65535, TAR_EXTENSION_MOST = 1024 * 1024 };

enum tar_type { TAR_FILE = '0', TAR_HARD_LINK = '1', TAR_LINK = '2', TAR_FOLDER = '5', TAR_FIFO = '6' };

/* What an overlay says of a path and a tar archive has no word for. */
enum tar_mark { TAR_NO_MARK, TAR_REMOVED, TAR_HIDES };

/* Names are bytes that end at their length and besides with a NUL. */
struct tar_entry {
  char type;
  const char *name, *link;
  size_t name_length, link_length;
  uint32_t mode;
  uint64_t uid, gid, size;
  struct timespec mtime;
  enum tar_mark mark; /* removed: nothing is to be there; hides: a folder in which nothing of what lies beneath is to be seen */
};

/* Offsets and lengths of the fields of a header. */
enum {
  TAR_AT_NAME = 0, TAR_NAME = 100,
  TAR_AT_MODE = 100, TAR_AT_UID = 108, TAR_AT_GID = 116, TAR_ID = 8,
  TAR_AT_SIZE = 124, TAR_AT_MTIME = 136, TAR_LONG = 12,
  TAR_AT_SUM = 148, TAR_SUM = 8,
  TAR_AT_TYPE = 156,
  TAR_AT_LINK = 157, TAR_LINK_NAME = 100,
  TAR_AT_MAGIC = 257, TAR_MAGIC = 8,
  TAR_AT_PREFIX = 345, TAR_PREFIX = 155,
};

/* A record and not a name, as archives of images have it: a guest may call its files whatever it likes. */
static const char TAR_MARK_KEY[] = "GLOVEBOX.mark";
static const char *const TAR_MARKS[] = { [TAR_REMOVED] = "removed", [TAR_HIDES] = "hides" };

/* Of all bytes of a header, its own field counted as spaces. */
static inline uint32_t tar_checksum(const uint8_t *block)
{
  uint32_t sum = 0;
  for (int i = 0; i < TAR_BLOCK; i++) sum += i >= TAR_AT_SUM && i < TAR_AT_SUM + TAR_SUM ? ' ' : block[i];
  return sum;
}

#endif
