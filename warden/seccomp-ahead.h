#ifndef GLOVEBOX_SECCOMP_AHEAD_H
#define GLOVEBOX_SECCOMP_AHEAD_H

#include <linux/filter.h>
#include <stddef.h>
#include <stdint.h>

/* Decisions that stand ahead of a compiled filter and that none of its rules can change. They speak of the filter's own architecture only. */
struct ahead {
  struct { uint32_t number, action; } calls[8];
  unsigned count;
  uint32_t highest; /* of all calls that anything was said about */
  uint32_t above;   /* what meets the numbers above it */
  int has_above;
  const struct sock_filter *code; /* comes after them, and finds the number loaded */
  size_t length;
};

/* Answers -1 when there is no room for more. */
int ahead_add(struct ahead *ahead, uint32_t number, uint32_t action);
void ahead_know(struct ahead *ahead, uint32_t number);
/* Answers -1 and leaves an errno when they cannot be written. */
int ahead_write(const struct ahead *ahead, uint32_t arch, int to);

#endif
