#include "files-duct.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

void duct_open(struct duct *duct, int flags)
{
  int ends[2];
  *duct = (struct duct){ .room = 0 };
  if (pipe2(ends, O_CLOEXEC | flags) < 0) return;
  int room = fcntl(ends[1], F_SETPIPE_SZ, DUCT_ROOM);
  if (room < 0) room = fcntl(ends[1], F_GETPIPE_SZ);
  *duct = (struct duct){ .in = ends[1], .out = ends[0], .room = room > 0 ? (size_t)room : DUCT_PAGE };
  if (duct->room < DUCT_ROOM / 4) duct_close(duct);
}

void duct_close(struct duct *duct)
{
  int error = errno;
  if (duct->room) {
    close(duct->in);
    close(duct->out);
  }
  duct->room = 0;
  errno = error;
}
