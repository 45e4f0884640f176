/* The cell's own groups, which the warden enters itself where whoever started it does not. */
#ifndef GLOVEBOX_ENTRY_H
#define GLOVEBOX_ENTRY_H

#include "arguments.h"

/* Dies where it cannot. Nothing of the cell may have been touched by then. */
void entry_make(const struct arguments *arguments);

#endif
