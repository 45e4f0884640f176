/* Who can keep all guests from making processes for a moment; see brake.c. */
#ifndef GLOVEBOX_BRAKE_H
#define GLOVEBOX_BRAKE_H

#include <stdbool.h>
#include <sys/types.h>

struct brake {
  pid_t pid; /* 0: there is none */
  int socket;
  bool held;
};

struct brake_order {
  int file; /* that bounds how many processes there are; closed here */
  const char *most; /* what it says otherwise */
  uid_t uid;
  gid_t gid;
};

/* Dies where it cannot be made. */
struct brake brake_fork(const struct brake_order *order);
void brake_hold(struct brake *brake);
void brake_let_go(struct brake *brake);

#endif
