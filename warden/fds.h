/* Descriptors: closing what must not be inherited. */
#ifndef GLOVEBOX_FDS_H
#define GLOVEBOX_FDS_H

#include <stdbool.h>
#include <stddef.h>

struct fds_kept {
  int fds[16];
  size_t count;
};

/* Closes every descriptor from 3 up but those kept. */
int fds_close_all_but(const struct fds_kept *kept);
int fds_set_nonblocking(int fd);
/* What a pipe has room for at first. Wider ones are for those that are always full: of each user the kernel grants only so much for all its pipes. */
enum { FDS_PIPE_USUAL = 65536 };
/* Whether it has more room now. */
bool fds_widen_pipe(int fd);
/* Whether enough numbers are free above this one; false with EMFILE. The last stay so: a kill must be able to open /proc however many runs there are. */
bool fds_leave_room(int fd);

#endif
