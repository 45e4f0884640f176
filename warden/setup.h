/* The mounts that are made from inside the cell, before anything of the guest's runs. */
#ifndef GLOVEBOX_SETUP_H
#define GLOVEBOX_SETUP_H

#include "arguments.h"

/* Carries them out in the order of PROTOCOL.md's table; dies at the first that fails. Answers the folder of layers, closed on exec; -1 when there is none. */
int setup_mounts(const struct arguments *arguments);
/* Covers what /proc shows of the warden itself and of its helper, where there is one, for kernels that show it to everybody. Nothing there can be read by its path any more, by the warden neither. */
void setup_hide(pid_t helper);

#endif
