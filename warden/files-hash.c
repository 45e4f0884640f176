#include "files-hash.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "sha256.h"

bool hash_file(int folder, const char *name, struct stat *stat, uint8_t digest[FILES_HASH_LENGTH])
{
  uint8_t buffer[65536];
  struct sha256 hash;
  int fd = openat(folder, name, O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_NOCTTY | O_CLOEXEC);
  if (fd < 0) return false;
  bool whole = fstat(fd, stat) == 0 && S_ISREG(stat->st_mode);
  /* As many bytes as are told with it: one that grows all the time has an end, and one that shrinks has no hash. */
  off_t left = whole ? stat->st_size : 0;
  sha256_begin(&hash);
  while (whole && left > 0) {
    ssize_t got = read(fd, buffer, left < (off_t)sizeof buffer ? (size_t)left : sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    whole = got > 0;
    if (!whole) break;
    sha256_add(&hash, buffer, (size_t)got);
    left -= got;
  }
  sha256_end(&hash, digest);
  close(fd);
  return whole;
}
