/* Writes the headers of an archive: equal entries give equal bytes. */
#ifndef GLOVEBOX_TAR_WRITE_H
#define GLOVEBOX_TAR_WRITE_H

#include "tar-format.h"

struct tar_sink {
  void (*put)(void *into, const void *bytes, size_t length);
  void *into;
};

/* False when there is no memory. Content follows, and tar_put_padding. */
bool tar_put_header(const struct tar_sink *sink, const struct tar_entry *entry);
void tar_put_padding(const struct tar_sink *sink, uint64_t size);
void tar_put_end(const struct tar_sink *sink);

#endif
