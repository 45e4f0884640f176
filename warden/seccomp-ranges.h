#ifndef GLOVEBOX_SECCOMP_RANGES_H
#define GLOVEBOX_SECCOMP_RANGES_H

#include <linux/filter.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Most calls are decided by their number alone, and neighbours mostly alike. As ranges these need a tenth of the instructions that libseccomp writes
 * for them, and every program pays for each instruction when it loads the filter. What depends on arguments stays with libseccomp.
 */
enum { RANGES_MOST_CALLS = 1024 };

struct ranges {
  struct { uint32_t action; unsigned char has_rule, has_conditions; } calls[RANGES_MOST_CALLS];
  uint32_t fallback; /* what meets a call without a rule */
};

void ranges_note(struct ranges *ranges, uint32_t number, uint32_t action, int conditions);
/* Whether a rule of this call has to be left to libseccomp. */
int ranges_leave(const struct ranges *ranges, uint32_t number);
/*
 * Instructions that decide every call up to `highest`, the number being loaded; whatever they do not decide goes on behind them. Answers how many they are,
 * 0 when it cannot be done within `room` and the reach of a jump.
 */
size_t ranges_write(const struct ranges *ranges, uint32_t highest, struct sock_filter *code, size_t room);

#endif
