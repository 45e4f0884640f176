/* Copying one thing to where nothing is, a folder with all in it. */
#ifndef GLOVEBOX_FILES_COPY_H
#define GLOVEBOX_FILES_COPY_H

#include <stdbool.h>

#include "files-frames.h"

struct copy {
  int from, to; /* folders */
  const char *from_name, *to_name;
  bool keep;    /* owner, set-id bits and times, as far as they may be kept: what was moved is to look as if it had been */
  char where[FILES_ERROR_OBJECT_MOST + 1]; /* at a failure: what it was at, below from_name */
};

/* False, and errno; what was made until then stays. */
bool copy_tree(struct copy *copy);
/* Of one regular file into an open one; false, and errno. */
bool copy_file(const struct copy *copy, int to);

#endif
