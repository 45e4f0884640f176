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
  ssize_t got = fstat(fd, stat) == 0 && S_ISREG(stat->st_mode) ? 1 : -1;
  sha256_begin(&hash);
  while (got > 0) {
    got = read(fd, buffer, sizeof buffer);
    if (got > 0) sha256_add(&hash, buffer, (size_t)got);
    else if (got < 0 && errno == EINTR) got = 1;
  }
  sha256_end(&hash, digest);
  close(fd);
  return got == 0;
}
