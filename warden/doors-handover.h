#ifndef GLOVEBOX_DOORS_HANDOVER_H
#define GLOVEBOX_DOORS_HANDOVER_H

#include <sys/socket.h>

#include "doors.h"

/* Room for what comes with one datagram: all doors, and who sent it. */
union doors_control {
  struct cmsghdr aligned;
  char bytes[CMSG_SPACE(DOORS_MOST * sizeof(int)) + CMSG_SPACE(sizeof(struct ucred))];
};

/* As one datagram, which is `doors` with its descriptors. Returns once they were taken: no program is to run without them. 0, or -1 with errno. */
int doors_hand_over(int link, const struct doors *doors);
/* To whoever handed them over: 0, or why they were not taken. */
void doors_answer(int link, int error);
/* Whether the descriptors that came with a datagram are those of `doors`, which have them then; otherwise they are closed. NULL: it was no datagram of doors. */
bool doors_take_over(struct msghdr *header, struct doors *doors);

#endif
