/* Removing what is there, a folder with all in it. */
#ifndef GLOVEBOX_FILES_REMOVE_H
#define GLOVEBOX_FILES_REMOVE_H

#include <stdbool.h>

#include "files-frames.h"

/* False, and errno, where something stays: `where` says what, below `name`. */
struct remains {
  char where[FILES_ERROR_OBJECT_MOST + 1];
};

/* Below the open folder, without following links. */
bool remove_tree(int folder, const char *name, struct remains *remains);

#endif
