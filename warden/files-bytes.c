#include "files-bytes.h"

#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <unistd.h>

enum { COPIED_AT_ONCE = 64 * 1024 };

bool write_bytes(int fd, const void *bytes, size_t length)
{
  for (size_t at = 0; at < length;) {
    ssize_t written = write(fd, (const uint8_t *)bytes + at, length - at);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    at += (size_t)written;
  }
  return true;
}

bool copy_bytes(int from, int to)
{
  uint8_t buffer[COPIED_AT_ONCE];
  for (;;) {
    ssize_t got = read(from, buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return got == 0;
    if (!write_bytes(to, buffer, (size_t)got)) return false;
  }
}

bool copy_some(int from, int to, size_t length)
{
  uint8_t buffer[COPIED_AT_ONCE];
  while (length) {
    ssize_t got = read(from, buffer, length < sizeof buffer ? length : sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0 || !write_bytes(to, buffer, (size_t)got)) return false;
    length -= (size_t)got;
  }
  return true;
}

bool files_wait(int fd, short events)
{
  struct pollfd poll_fd = { .fd = fd, .events = events };
  return poll(&poll_fd, 1, -1) >= 0 || errno == EINTR;
}
