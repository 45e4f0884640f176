/* What an extension header says about the entry after it. Pure but for the memory of names. */
#ifndef GLOVEBOX_TAR_PAX_H
#define GLOVEBOX_TAR_PAX_H

#include "tar-read.h"

/* Into the reader's fields; NULL, or what is wrong with it. */
const char *tar_pax(struct tar_reader *reader, const char *text, size_t length);
/* Of a header that is meant for all entries: nothing that names or sizes an entry can be. */
const char *tar_pax_global(const char *text, size_t length);
/* Takes a copy; false when there is no memory or the text cannot be a name. */
bool tar_text_set(struct tar_text *into, const char *text, size_t length);

#endif
