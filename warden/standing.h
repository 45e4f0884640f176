/* What others of a program's id may change of it from outside, and what it would keep over execve: limits, and its place among those who wait for a processor. */
#ifndef GLOVEBOX_STANDING_H
#define GLOVEBOX_STANDING_H

#include <stdbool.h>
#include <sys/resource.h>

struct standing {
  struct rlimit limits[RLIM_NLIMITS];
  unsigned char processors[128];
  long nice, policy, io;
};

/* Of the caller. */
void standing_note(struct standing *standing);
bool standing_is(const struct standing *noted);

#endif
