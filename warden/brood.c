#include "brood.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "liner.h"

pid_t brood_clone(int namespaces)
{
  return (pid_t)syscall(SYS_clone, (unsigned long)(namespaces | CLONE_PARENT | SIGCHLD), 0, 0, 0, 0);
}

static void take_descriptors(struct brood_message *message, struct msghdr *header)
{
  message->fd_count = 0;
  for (struct cmsghdr *part = CMSG_FIRSTHDR(header); part; part = CMSG_NXTHDR(header, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
    message->fd_count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    memcpy(message->fds, CMSG_DATA(part), message->fd_count * sizeof(int));
  }
}

/* False when the warden is gone. */
static bool hear(struct brood *brood)
{
  union {
    struct cmsghdr aligned;
    char bytes[CMSG_SPACE(BROOD_FDS_MOST * sizeof(int))];
  } control;
  struct brood_message *message = &brood->message;
  struct iovec part = { .iov_base = message->bytes, .iov_len = sizeof message->bytes };
  struct msghdr header = { .msg_iov = &part, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof control.bytes };
  ssize_t got;
  while ((got = recvmsg(brood->socket, &header, MSG_CMSG_CLOEXEC)) < 0 && errno == EINTR) { }
  message->length = got > 0 ? (size_t)got : 0;
  take_descriptors(message, &header);
  return got > 0;
}

static void settle(struct brood *brood)
{
  struct brood_message *message = &brood->message;
  const struct brood_setup *setup = &message->setup;
  struct warden *warden = &brood->warden;
  if (message->length != sizeof *setup + setup->filter_length * sizeof(struct sock_filter) || message->fd_count != setup->join_count) return;
  warden->filter = malloc(message->length - sizeof *setup + 1);
  if (!warden->filter) return;
  memcpy(warden->filter, message->bytes + sizeof *setup, message->length - sizeof *setup);
  warden->filter_length = setup->filter_length;
  warden->files = setup->files;
  warden->layers = -1;
  warden->join_count = setup->join_count;
  for (uint32_t i = 0; i < setup->join_count; i++) {
    warden->joins[i].fd = message->fds[i];
    memcpy(warden->joins[i].file, setup->join_files[i], sizeof warden->joins[i].file);
  }
  brood->lining = setup->lining;
  brood->ready = true;
}

/* The payload as it was sent; what is spilled is read into memory of its own. NULL with errno. */
static const uint8_t *payload_of(const struct brood_message *message)
{
  const struct brood_order *order = &message->order;
  if (!order->spilled) return message->bytes + sizeof *order;
  uint8_t *bytes = mmap(NULL, order->length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (bytes == MAP_FAILED) return NULL;
  for (size_t got = 0; got < order->length;) {
    ssize_t more = pread(message->fds[1], bytes + got, order->length - got, (off_t)got);
    if (more <= 0) return NULL;
    got += (size_t)more;
  }
  return bytes;
}

/* From what came to what is to be done. False when it is not understood. */
static bool plan_from(const struct brood *brood, struct plan *plan, struct start *start)
{
  const struct brood_message *message = &brood->message;
  const uint8_t *payload = payload_of(message);
  if (!payload || start_parse(payload, message->order.length, start)) return false;
  *plan = (struct plan){ .warden = &brood->warden, .start = start, .streams = { -1, -1, -1, -1 }, .link = message->fds[0], .doors = &message->order.doors, .liner = true };
  size_t next = message->order.spilled ? 2 : 1;
  for (int stream = 0; stream < 3; stream++)
    if (message->order.streams >> stream & 1) plan->streams[stream] = message->fds[next++];
  return true;
}

void brood_answer(int socket, pid_t pid)
{
  const struct brood_answer words = { .pid = pid < 0 ? 0 : pid, .error = pid < 0 ? errno : 0 };
  while (send(socket, &words, sizeof words, MSG_NOSIGNAL) < 0 && errno == EINTR) { }
}

/* True in the program of a liner. */
static bool obey(struct brood *brood, struct plan *plan, struct start *start)
{
  const uint32_t kind = brood->message.kind;
  errno = EPROTO;
  pid_t pid = -1;
  if (kind == BROOD_LINER && brood->ready) pid = brood_clone(LINER_NAMESPACES);
  else if (kind == BROOD_ZYGOTE && brood->become_zygote) pid = brood_clone(0);
  if (pid) {
    brood_answer(brood->socket, pid);
    return false;
  }
  /* What cannot be told of by the link is told by its end. */
  if (!plan_from(brood, plan, start)) _exit(1);
  if (kind == BROOD_ZYGOTE) brood->become_zygote(brood, plan);
  keeper_take_places(plan);
  liner_furnish(plan, &brood->lining);
  return true;
}

/*
 * A later fork has all this memory, and the next message may be shorter: of one run's arguments and environment the next must find nothing. What only the
 * longest need is given back, because it would wait in every cell for nothing.
 */
static void forget(struct brood_message *message)
{
  const size_t page = (size_t)sysconf(_SC_PAGESIZE), kept = 2 * page;
  for (size_t i = 0; message->kind != BROOD_SETUP && i < message->fd_count; i++) close(message->fds[i]);
  explicit_bzero(message->bytes, message->length);
  uintptr_t from = ((uintptr_t)message->bytes + kept + page - 1) / page * page, to = ((uintptr_t)message->bytes + message->length) / page * page;
  if (message->length > kept && from < to) madvise((void *)from, to - from, MADV_DONTNEED);
}

/* The same where the first process is no copy: what it needs is there before it, and put away after it. -1, and in the program its end of the status. */
static int hatch(struct brood *brood, struct plan *plan, struct start *start)
{
  errno = EPROTO;
  const bool understood = plan_from(brood, plan, start);
  if (!understood) brood_answer(brood->socket, -1);
  const int status = understood ? brood->hatch(brood, plan) : -1;
  if (status >= 0) return status;
  if (brood->message.order.spilled && start->raw) munmap((void *)start->raw, start->raw_length);
  start_wipe(start);
  return -1;
}

/* In memory of its own, of which only what is used is there. */
struct brood *brood_make(int socket)
{
  struct brood *brood = mmap(NULL, sizeof *brood, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (brood == MAP_FAILED) return NULL;
  brood->socket = socket;
  return brood;
}

void brood_greet(int socket)
{
  brood_answer(socket, 0);
}

int brood_serve(struct brood *brood, struct plan *plan, struct start *start)
{
  while (hear(brood)) {
    int status = -1;
    if (brood->message.kind == BROOD_SETUP) settle(brood);
    else if (brood->message.kind == BROOD_LINER && brood->ready && brood->hatch) status = hatch(brood, plan, start);
    else if (obey(brood, plan, start)) return keeper_keep(plan);
    if (status >= 0) return status;
    forget(&brood->message);
  }
  _exit(0);
}
