#include "cradle.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "brood.h"
#include "cradle-process.h"
#include "die.h"

/* Nothing that is asked takes long. Whoever does not answer by then was stopped or is no more, and nothing else may wait for it. */
enum { ANSWER_MS = 5000 };

struct parcel {
  struct iovec parts[2];
  size_t part_count;
  int fds[BROOD_FDS_MOST];
  size_t fd_count;
};

static int post(int socket, struct parcel *parcel)
{
  union {
    struct cmsghdr aligned;
    char bytes[CMSG_SPACE(BROOD_FDS_MOST * sizeof(int))];
  } control = { .bytes = { 0 } };
  struct msghdr header = { .msg_iov = parcel->parts, .msg_iovlen = parcel->part_count };
  if (parcel->fd_count) {
    header.msg_control = control.bytes;
    header.msg_controllen = CMSG_SPACE(parcel->fd_count * sizeof(int));
    struct cmsghdr *part = CMSG_FIRSTHDR(&header);
    *part = (struct cmsghdr){ .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(parcel->fd_count * sizeof(int)) };
    memcpy(CMSG_DATA(part), parcel->fds, parcel->fd_count * sizeof(int));
  }
  ssize_t sent;
  while ((sent = sendmsg(socket, &header, MSG_NOSIGNAL)) < 0 && errno == EINTR) { }
  return sent < 0 ? -1 : 0;
}

static pid_t hear_answer(struct mother *mother)
{
  struct brood_answer words = { 0 };
  struct pollfd end = { .fd = mother->socket, .events = POLLIN };
  int ready;
  while ((ready = poll(&end, 1, ANSWER_MS)) < 0 && errno == EINTR) { }
  /* An answer that comes too late would be taken for that to another question. */
  if (ready <= 0) kill(mother->pid, SIGKILL);
  ssize_t got = ready > 0 ? recv(mother->socket, &words, sizeof words, 0) : 0;
  errno = ready == 0 ? ETIMEDOUT : got == (ssize_t)sizeof words ? words.error : ESRCH;
  return got == (ssize_t)sizeof words ? words.pid : 0;
}

void cradle_fork(struct warden *warden)
{
  if (!warden->lining) return;
  int sockets[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) < 0) die("make", "the cradle's socket");
  pid_t pid = fork();
  if (pid < 0) die("fork", "the cradle");
  if (pid == 0) cradle_become(warden, sockets[1]);
  close(sockets[1]);
  warden->cradle = (struct mother){ .pid = pid, .socket = sockets[0], .serves = true };
  hear_answer(&warden->cradle);
  /* What went wrong it has said itself. */
  if (errno) _exit(DIE_STATUS);
}

static int set_up(const struct warden *warden, int socket)
{
  struct brood_setup setup = { .kind = BROOD_SETUP, .join_count = (uint32_t)warden->join_count, .files = warden->files, .lining = *warden->lining };
  struct parcel parcel = { .part_count = 2, .fd_count = warden->join_count };
  for (size_t i = 0; i < warden->join_count; i++) {
    memcpy(setup.join_files[i], warden->joins[i].file, sizeof setup.join_files[i]);
    parcel.fds[i] = warden->joins[i].fd;
  }
  setup.filter_length = (uint32_t)warden->filter_length;
  parcel.parts[0] = (struct iovec){ .iov_base = &setup, .iov_len = sizeof setup };
  parcel.parts[1] = (struct iovec){ .iov_base = warden->filter, .iov_len = warden->filter_length * sizeof *warden->filter };
  return post(socket, &parcel);
}

void cradle_configure(struct warden *warden)
{
  if (warden->cradle.pid && warden->filter_length) set_up(warden, warden->cradle.socket);
}

static int file_of(const uint8_t *bytes, size_t length)
{
  int fd = memfd_create("glovebox", MFD_CLOEXEC);
  for (size_t put = 0; fd >= 0 && put < length;) {
    ssize_t more = write(fd, bytes + put, length - put);
    if (more > 0) put += (size_t)more;
    else if (errno != EINTR) {
      close(fd);
      return -1;
    }
  }
  return fd;
}

static pid_t send_order(const struct warden *warden, struct mother *mother, const struct start *start, const struct ends *ends)
{
  struct brood_order order = { .kind = start->zygote ? BROOD_ZYGOTE : BROOD_LINER, .length = (uint32_t)start->raw_length, .doors = warden->doors_plan };
  struct parcel parcel = { .parts = { { &order, sizeof order }, { (void *)start->raw, start->raw_length } }, .part_count = 2 };
  int spill = -1, library = -1;
  parcel.fds[parcel.fd_count++] = ends->link[ENDS_THEIRS];
  order.spilled = start->raw_length > BROOD_INLINE_MOST;
  if (order.spilled) {
    parcel.part_count = 1;
    parcel.fds[parcel.fd_count++] = spill = file_of(start->raw, start->raw_length);
  }
  for (int stream = 0; stream < 3; stream++) {
    if (ends->streams[stream][ENDS_THEIRS] < 0) continue;
    order.streams |= 1u << stream;
    parcel.fds[parcel.fd_count++] = ends->streams[stream][ENDS_THEIRS];
  }
  if (start->zygote) {
    parcel.fds[parcel.fd_count++] = warden->zygote.socket;
    parcel.fds[parcel.fd_count++] = library = file_of(start->library, start->library_length);
  }
  bool able = (!order.spilled || spill >= 0) && (!start->zygote || library >= 0);
  pid_t pid = able && post(mother->socket, &parcel) == 0 ? hear_answer(mother) : 0;
  int error = errno;
  if (spill >= 0) close(spill);
  if (library >= 0) close(library);
  errno = error;
  return pid;
}

/* Its own end is the warden's from now on; the other goes to the process, with everything it needs already in it. */
static pid_t order_zygote(struct warden *warden, const struct start *start, const struct ends *ends)
{
  int sockets[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) < 0) return 0;
  warden->zygote.socket = sockets[1];
  pid_t pid = set_up(warden, sockets[0]) == 0 ? send_order(warden, &warden->cradle, start, ends) : 0;
  int error = errno;
  close(sockets[1]);
  if (pid) warden->zygote = (struct mother){ .pid = pid, .socket = sockets[0] };
  else close(sockets[0]);
  errno = error;
  return pid;
}

static bool serves(struct mother *mother)
{
  struct brood_answer words;
  if (!mother->serves) mother->serves = recv(mother->socket, &words, sizeof words, MSG_DONTWAIT) == (ssize_t)sizeof words;
  return mother->serves;
}

/* Where a guest outside of every liner has the same id, it could have done anything to whoever makes liners. */
static const char *lack_of(struct warden *warden, const struct start *start)
{
  errno = EOPNOTSUPP;
  if (!warden->lining) return "a liner in this cell";
  if (!warden->filter_length || warden->rules.given) return "a liner without a filter, or with rules for files";
  errno = EPERM;
  if (warden->shares_id && warden->plain_started) return "a liner after a program outside of one";
  errno = ESRCH;
  if (!warden->cradle.pid) return "a liner: the cradle has ended";
  if (start->forked && !warden->zygote.pid) return "a fork: the zygote has ended";
  errno = EAGAIN;
  if (start->forked && !serves(&warden->zygote)) return "a fork: the zygote is not ready";
  errno = EEXIST;
  if (start->zygote && warden->zygote.pid) return "a second zygote";
  return NULL;
}

pid_t cradle_order(struct warden *warden, const struct start *start, const struct ends *ends, const char **object)
{
  *object = lack_of(warden, start);
  if (*object) return 0;
  *object = start->zygote ? "the zygote" : "the liner";
  if (start->zygote) return order_zygote(warden, start, ends);
  return send_order(warden, start->forked ? &warden->zygote : &warden->cradle, start, ends);
}

void cradle_bury(struct warden *warden, pid_t pid)
{
  for (struct mother *mothers[] = { &warden->cradle, &warden->zygote }, **each = mothers; each < mothers + 2; each++) {
    if ((*each)->pid != pid) continue;
    close((*each)->socket);
    **each = (struct mother){ 0 };
  }
}
