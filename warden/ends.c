#include "ends.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/fsuid.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "caps.h"
#include "fds.h"
#include "lining.h"
#include "terminal.h"

void ends_close_side(const struct ends *ends, int side)
{
  for (int stream = 0; stream < ENDS_STREAMS; stream++)
    if (ends->streams[stream][side] >= 0) close(ends->streams[stream][side]);
  if (ends->link[side] >= 0) close(ends->link[side]);
}

/* Each stream has a descriptor of its own, so that each can be closed by itself. */
static int open_terminal(const struct warden *warden, struct ends *ends, const struct start *start)
{
  struct terminal terminal;
  if (terminal_open(warden, start, &terminal) < 0) return -1;
  ends->streams[0][ENDS_OURS] = terminal.near;
  ends->streams[0][ENDS_THEIRS] = terminal.far;
  int result = ends->streams[1][ENDS_OURS] = fcntl(terminal.near, F_DUPFD_CLOEXEC, 3);
  for (int stream = 1; stream < 3 && result >= 0; stream++) result = ends->streams[stream][ENDS_THEIRS] = fcntl(terminal.far, F_DUPFD_CLOEXEC, 3);
  return result < 0 ? -1 : 0;
}

static int open_pipes(struct ends *ends, const struct start *start)
{
  for (int stream = start->stdin_fed ? 0 : 1; stream < (start->aside ? ENDS_STREAMS : 3); stream++) {
    int pair[2];
    if (pipe2(pair, O_CLOEXEC) < 0) return -1;
    ends->streams[stream][ENDS_OURS] = pair[stream == 0 ? 1 : 0];
    ends->streams[stream][ENDS_THEIRS] = pair[stream == 0 ? 0 : 1];
    if (fds_set_nonblocking(ends->streams[stream][ENDS_OURS]) < 0) return -1;
  }
  return 0;
}

/* Kernels that know of no id for files alone use the effective one. The real and the saved one stay, which decide who may signal or trace the warden. */
static void have_files_of(uid_t uid, gid_t gid)
{
  setfsgid(gid);
  setfsuid(uid);
  if ((gid_t)setfsgid((gid_t)-1) != gid && setresgid((gid_t)-1, gid, (gid_t)-1) < 0) return;
  if ((uid_t)setfsuid((uid_t)-1) != uid && setresuid((uid_t)-1, uid, (uid_t)-1) < 0) return;
}

/* A pipe and a terminal belong to the file-system id that made them; it must be the guest's, or the guest could not open /dev/stdout. */
static int open_stdio_as_guest(const struct warden *warden, struct ends *ends, const struct start *start)
{
  const bool lined = (start->liner || start->zygote) && warden->lining;
  const uid_t own = geteuid();
  const gid_t group = getegid();
  have_files_of(lined ? warden->lining->uid : start->uid, lined ? warden->lining->gid : start->gid);
  int result = start->terminal ? open_terminal(warden, ends, start) : open_pipes(ends, start);
  int error = errno;
  /* Who stops being 0 loses the rights over files from the effective set, and where it was 0 altogether all of them, and is no longer what it was found to be. */
  uint64_t permitted;
  prctl(PR_SET_KEEPCAPS, 1);
  have_files_of(own, group);
  prctl(PR_SET_KEEPCAPS, 0);
  if (caps_permitted(&permitted) == 0) caps_set(permitted);
  /* A changed id resets this to whatever the host's fs.suid_dumpable says. */
  prctl(PR_SET_DUMPABLE, 0);
  errno = error;
  return result;
}

int ends_open(const struct warden *warden, struct ends *ends, const struct start *start)
{
  if (open_stdio_as_guest(warden, ends, start) < 0) return -1;
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends->link) < 0) {
    ends->link[ENDS_OURS] = ends->link[ENDS_THEIRS] = -1;
    return -1;
  }
  const int yes = 1;
  /* Only so is whoever writes to it known by its number here. */
  if ((start->liner || start->zygote) && setsockopt(ends->link[ENDS_OURS], SOL_SOCKET, SO_PASSCRED, &yes, sizeof yes) < 0) return -1;
  return fds_set_nonblocking(ends->link[ENDS_OURS]);
}
