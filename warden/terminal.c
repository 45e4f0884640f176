#include "terminal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "fds.h"
#include "wire.h"

/* A cell has a devpts of its own; outside of one the host's is reached by the name that every host has. */
static int open_near(const struct warden *warden)
{
  return open(warden->subreaper ? "/dev/ptmx" : "/dev/pts/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC);
}

/* By its other end where the kernel can: a path may lead elsewhere. */
static int open_far(int near)
{
  const int flags = O_RDWR | O_NOCTTY;
  int locked = 0;
  unsigned number;
  if (ioctl(near, TIOCSPTLCK, &locked) < 0 || ioctl(near, TIOCGPTN, &number) < 0) return -1;
  int far = ioctl(near, TIOCGPTPEER, flags);
  /* Asked for with the rest, O_CLOEXEC would stay on the file, and /proc tell it of the copies that programs have too. */
  if (far >= 0) return fcntl(far, F_SETFD, FD_CLOEXEC) < 0 ? (close(far), -1) : far;
  if (errno != ENOTTY && errno != EINVAL) return far;
  char path[32];
  snprintf(path, sizeof path, "/dev/pts/%u", number);
  return open(path, flags | O_CLOEXEC | O_NOFOLLOW);
}

static int dress(int far, const struct start *start)
{
  const struct winsize size = { .ws_row = start->rows, .ws_col = start->columns };
  struct termios settings;
  if (ioctl(far, TIOCSWINSZ, &size) < 0 || tcgetattr(far, &settings) < 0) return -1;
  settings.c_iflag |= IUTF8;
  return tcsetattr(far, TCSANOW, &settings);
}

int terminal_open(const struct warden *warden, const struct start *start, struct terminal *terminal)
{
  int near = open_near(warden);
  if (near < 0) return -1;
  int far = open_far(near);
  if (far >= 0 && dress(far, start) == 0 && fds_set_nonblocking(near) == 0) {
    *terminal = (struct terminal){ .near = near, .far = far };
    return 0;
  }
  int error = errno;
  if (far >= 0) close(far);
  close(near);
  errno = error;
  return -1;
}

void terminal_resize(int near, const uint8_t *size)
{
  const struct winsize now = { .ws_row = wire_u16(size), .ws_col = wire_u16(size + 2) };
  ioctl(near, TIOCSWINSZ, &now);
}

/* Behind half a line it only hands that over, so that it takes two to end the input. */
bool terminal_type_end(const struct feed *feed)
{
  struct termios settings;
  if (tcgetattr(feed->fd, &settings) < 0) return true;
  const char ends[] = { (char)settings.c_cc[VEOF], (char)settings.c_cc[VEOF] };
  const bool begins_line = feed->last == '\n' || feed->last == '\r';
  ssize_t written;
  while ((written = write(feed->fd, ends, begins_line ? 1 : 2)) < 0 && errno == EINTR) { }
  return written >= 0 || errno != EAGAIN;
}

bool terminal_is_free(const struct warden *warden)
{
  size_t open_ones = 0;
  for (size_t i = 0; i < warden->run_count; i++) {
    const struct run *run = warden->runs[i];
    open_ones += run->terminal && (run->taps[0].fd >= 0 || run->feed.fd >= 0);
  }
  errno = ENOSPC;
  return open_ones < TERMINALS_MOST;
}
