/* What is written over folders of the host's, kept on the cell's own disk. */
#ifndef GLOVEBOX_LAYERS_H
#define GLOVEBOX_LAYERS_H

#include "arguments.h"

/*
 * Covers each folder of `--overlay` with a writable overlay of itself, while `disk`, a folder of the cell's disk, is still mounted somewhere. Answers the
 * folder in which each has its own by its index; -1 when there is none to cover.
 */
int layers_lay(const struct arguments *arguments, int disk);
/* The same on the disk that the launcher made, which is bound at `--layers` until then. */
int layers_lay_within(const struct arguments *arguments);

#endif
