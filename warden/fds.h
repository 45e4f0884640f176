/* Descriptors: closing what must not be inherited. */
#ifndef GLOVEBOX_FDS_H
#define GLOVEBOX_FDS_H

#include <stddef.h>

struct fds_kept {
  int fds[16];
  size_t count;
};

/* Closes every descriptor from 3 up but those kept. */
int fds_close_all_but(const struct fds_kept *kept);
int fds_set_nonblocking(int fd);

#endif
