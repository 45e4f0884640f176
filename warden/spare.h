/* A keeper with a program-to-be, made while nobody waits, for the next START of the kind that came last. */
#ifndef GLOVEBOX_SPARE_H
#define GLOVEBOX_SPARE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "ends.h"
#include "start.h"

/* What must be known of a START before its processes can be made. */
struct spare_kind {
  uint32_t uid, gid;
  uint64_t capabilities;
  bool stdin_fed, gate;
};

struct spare {
  pid_t keeper; /* 0: there is none, and of the next three only `latest` means something */
  struct ends ends; /* our side */
  int cradle;
  struct spare_kind kind;
  struct spare_kind latest; /* of the last START that could have used one */
  unsigned alike; /* how many in a row were of that kind */
};

/* The payload that a spare takes: what fits a single datagram wherever we run. */
enum { SPARE_START_MOST = 32768 };

struct warden;
/* Hands START to the spare. Its keeper, with our side of its ends; or 0: it must be made. */
pid_t spare_take(struct warden *warden, const struct start *start, struct ends *ends);
/* Makes one where it is of use; `idle`: nothing happened for as long as spare_wait_ms says. */
void spare_tend(struct warden *warden, bool idle);
/* How long nothing may happen until one is made; -1: none is to be made. */
int spare_wait_ms(const struct warden *warden);
/* Its keeper was reaped: nothing of it is left. */
void spare_forget(struct warden *warden);

#endif
