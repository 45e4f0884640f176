/* Folders and files of the host's, put where the cell sees them. */
#ifndef GLOVEBOX_PLACE_H
#define GLOVEBOX_PLACE_H

#include "arguments.h"

/* Before anything covers them. */
void place_recognise(const struct arguments *arguments);
/* Once the cell's writable folders are there, and while its root still is writable. */
void place_mounts(const struct arguments *arguments);

#endif
