#include "fds.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SYS_close_range
#define SYS_close_range 436
#endif

enum { SPARE_FILES = 16, PIPE_WIDE = 4 * FDS_PIPE_USUAL };

/* Kernels before 5.9: the soft limit is the highest number that can have been opened since the warden set it. */
static int close_each(unsigned first, unsigned last)
{
  struct rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) < 0) return -1;
  for (unsigned fd = first; fd <= last && fd < limit.rlim_cur; fd++) close((int)fd);
  return 0;
}

/* No number is beyond an int, which is what some kernels take them for. */
static int close_between(unsigned first, unsigned last)
{
  if (last > INT_MAX) last = INT_MAX;
  if (first > last) return 0;
  if (syscall(SYS_close_range, first, last, 0) == 0) return 0;
  return errno == ENOSYS || errno == EPERM ? close_each(first, last) : -1;
}

int fds_close_all_but(const struct fds_kept *kept)
{
  unsigned first = 3;
  for (;;) {
    unsigned next = UINT_MAX;
    for (size_t i = 0; i < kept->count; i++)
      if ((unsigned)kept->fds[i] >= first && (unsigned)kept->fds[i] < next) next = (unsigned)kept->fds[i];
    if (next == UINT_MAX) return close_between(first, UINT_MAX);
    if (next > first && close_between(first, next - 1) < 0) return -1;
    first = next + 1;
  }
}

int fds_set_nonblocking(int fd)
{
  int flags = fcntl(fd, F_GETFL);
  return flags < 0 ? -1 : fcntl(fd, F_SETFL, flags | O_NONBLOCK);
}

bool fds_leave_room(int fd)
{
  struct rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) < 0) return false;
  errno = EMFILE;
  return (rlim_t)fd + SPARE_FILES < limit.rlim_cur;
}

bool fds_widen_pipe(int fd)
{
  return fcntl(fd, F_SETPIPE_SZ, PIPE_WIDE) >= PIPE_WIDE;
}
