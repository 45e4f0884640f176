#ifndef GLOVEBOX_SECCOMP_RANGES_H
#define GLOVEBOX_SECCOMP_RANGES_H

#include <linux/filter.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Most calls are decided by their number alone, and neighbours mostly alike. As ranges these need a tenth of the instructions that libseccomp writes
 * for them, and every program pays for each instruction when it loads the filter. What depends on arguments goes on behind them.
 */
enum { RANGES_MOST_CALLS = 1024 };

struct ranges {
  struct { uint32_t action; unsigned char has_rule, has_conditions; } calls[RANGES_MOST_CALLS];
  uint32_t fallback; /* what meets a call without a rule */
};

void ranges_note(struct ranges *ranges, uint32_t number, uint32_t action, int conditions);
/* Whether this call is left to what stands behind. */
int ranges_leave(const struct ranges *ranges, uint32_t number);
/*
 * Instructions that decide every call up to `highest`, the number being loaded; whatever they do not decide goes on behind them. Answers how many they are,
 * 0 when it cannot be done within `room` and the reach of a jump.
 */
size_t ranges_write(const struct ranges *ranges, uint32_t highest, struct sock_filter *code, size_t room);

#endif
