/* A liner: namespaces, a disk, a loopback and a /proc for one run alone. */
#ifndef GLOVEBOX_LINER_H
#define GLOVEBOX_LINER_H

#include <sched.h>

#include "keeper.h"
#include "lining.h"

enum { LINER_NAMESPACES = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWNET | CLONE_NEWUTS };

/*
 * In the first process of new namespaces of all these kinds, which is the program's keeper and has taken its places: makes the rest of the liner. Tells
 * the warden what could not be made, and ends.
 */
void liner_furnish(const struct plan *plan, const struct lining *lining);

#endif
