/* Reads an archive as it comes: ustar, pax (path, linkpath, size, mtime, uid, gid) and GNU's long names and large numbers. */
#ifndef GLOVEBOX_TAR_READ_H
#define GLOVEBOX_TAR_READ_H

#include "tar-format.h"

struct tar_text {
  char *bytes; /* NULL: not given */
  size_t length;
};

struct tar_reader {
  /* Up to `length` bytes; fewer only at the end of the archive. */
  size_t (*pull)(void *from, uint8_t *into, size_t length);
  void *from;
  uint64_t content_left, padding_left;
  struct tar_text name, link;      /* of the latest entry */
  struct tar_text long_name, long_link; /* said ahead of the entry they are for */
  bool has_size, has_mtime, has_uid, has_gid;
  enum tar_mark mark;
  uint64_t size, uid, gid;
  struct timespec mtime;
  const char *why; /* what is wrong with it */
  char odd_type;   /* the type that is not understood, where that is what is wrong */
};

enum tar_result { TAR_ENTRY, TAR_END, TAR_WRONG };

/* What is left of the content of the entry before is passed over. Of TAR_WRONG `why` says why, and `name` may hold which entry. */
enum tar_result tar_next(struct tar_reader *reader, struct tar_entry *entry);
/* The next bytes of the entry's content; 0 at its end, -1 when the archive ends before it. */
ssize_t tar_content(struct tar_reader *reader, uint8_t *into, size_t length);
void tar_reader_free(struct tar_reader *reader);

#endif
