/*
 * A connection is a run without a keeper and without a program: its socket is both where the input goes and where the output comes from, by a
 * descriptor for each, so that each direction ends by itself.
 *
 * dialing (RUN_STARTING) ──CONNECTED──▶ connected (RUN_STARTED) ──both directions over──▶ CLOSED (RUN_OVER)
 *    └─────FAILED─────────────────────────────────────────────────────────────────────────────┘
 *
 * What cannot be written any more is no reason to lose what can still be read: an HTTP server may answer and close before it has read all.
 */
#include "connection.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "clock.h"
#include "fds.h"
#include "feed.h"
#include "report.h"
#include "spawn.h"
#include "wire.h"

enum { PATIENCE_MS = 10000 };

union address {
  struct sockaddr any;
  struct sockaddr_in four;
  struct sockaddr_in6 six;
};

static socklen_t address_of(const struct dial *dial, union address *address)
{
  *address = (union address){ 0 };
  if (dial->second) {
    address->six = (struct sockaddr_in6){ .sin6_family = AF_INET6, .sin6_port = htons(dial->port), .sin6_addr = IN6ADDR_LOOPBACK_INIT };
    return sizeof address->six;
  }
  address->four = (struct sockaddr_in){ .sin_family = AF_INET, .sin_port = htons(dial->port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
  return sizeof address->four;
}

static void refuse(struct warden *warden, struct run *run, int error)
{
  struct failure failure = { .stage = STAGE_CONNECT, .error = (uint32_t)error };
  snprintf(failure.text, sizeof failure.text, "connect to port %u", run->dial.port);
  if (run->dial.fd >= 0) close(run->dial.fd);
  run->dial.fd = -1;
  run->phase = RUN_OVER;
  spawn_refuse(warden, run->id, &failure);
}

/* Where nobody listens the kernel may choose the very port as the connection's own, and so connect it to itself. */
static bool is_its_own_peer(const struct dial *dial)
{
  union address own;
  socklen_t length = sizeof own;
  /* The port is at the same place in both. */
  return getsockname(dial->fd, &own.any, &length) == 0 && ntohs(own.four.sin_port) == dial->port;
}

static void welcome(struct warden *warden, struct run *run)
{
  const int now = 1;
  int copy = fcntl(run->dial.fd, F_DUPFD_CLOEXEC, 3);
  if (copy < 0 || !fds_leave_room(copy)) {
    int error = errno;
    if (copy >= 0) close(copy);
    return refuse(warden, run, error);
  }
  /* What the engine sends it has gathered already. */
  setsockopt(run->dial.fd, IPPROTO_TCP, TCP_NODELAY, &now, sizeof now);
  run->feed.fd = run->dial.fd;
  run->taps[0].fd = copy;
  run->dial.fd = -1;
  run->dial.error = 0;
  run->phase = RUN_STARTED;
  queue_frame(&warden->queue, &(struct frame){ .type = FRAME_CONNECTED, .run = run->id });
}

/* 0 when connected, EINPROGRESS while it is on the way, or why not. */
static int dial(struct dial *dial)
{
  union address address;
  socklen_t length = address_of(dial, &address);
  dial->fd = socket(address.any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (dial->fd < 0 || !fds_leave_room(dial->fd)) return errno;
  return connect(dial->fd, &address.any, length) == 0 ? 0 : errno;
}

/* Takes what became of one address: the other is tried when it was the first that failed. */
static void judge(struct warden *warden, struct run *run, int error)
{
  struct dial *at = &run->dial;
  for (;;) {
    if (error == 0 && is_its_own_peer(at)) error = ECONNREFUSED;
    if (error == 0) return welcome(warden, run);
    if (error == EINPROGRESS) return;
    if (at->second) return refuse(warden, run, (int)at->error);
    if (at->fd >= 0) close(at->fd);
    at->error = (uint32_t)error;
    at->second = true;
    error = dial(at);
  }
}

/* What is the warden's own is no program's: whoever connects from outside is not to be taken for a guest. */
static bool is_door(const struct warden *warden, uint16_t port)
{
  for (size_t i = 0; i < warden->doors.count; i++)
    if (warden->doors.list[i].port == port) return true;
  return false;
}

void connection_begin(struct warden *warden, uint32_t id, uint16_t port)
{
  struct failure failure = { .stage = STAGE_CONNECT };
  struct run *run = warden->run_count - warden->accepted_count < WARDEN_RUNS_MOST ? calloc(1, sizeof *run) : NULL;
  if (!run) {
    errno = EAGAIN;
    failure_note(&failure, "make", "one more connection");
    return spawn_refuse(warden, id, &failure);
  }
  *run = (struct run){
    .id = id,
    .connection = true,
    .link = -1,
    .window = FRAME_WINDOW,
    .taps = { { .fd = -1, .credit = FRAME_WINDOW }, { .fd = -1, .credit = FRAME_WINDOW }, { .fd = -1, .credit = FRAME_WINDOW } },
    .feed = { .fd = -1, .credit = FRAME_WINDOW, .room = FRAME_WINDOW },
    .dial = { .fd = -1, .port = port, .give_up_ms = clock_now_ms() + PATIENCE_MS },
  };
  if (is_door(warden, port)) refuse(warden, run, ECONNREFUSED);
  else judge(warden, run, dial(&run->dial));
  if (run->phase == RUN_OVER) free(run);
  else warden->runs[warden->run_count++] = run;
}

bool connection_is_dialing(const struct run *run)
{
  return run->connection && run->phase == RUN_STARTING;
}

void connection_advance(struct warden *warden, struct run *run)
{
  int error = 0;
  socklen_t length = sizeof error;
  if (!connection_is_dialing(run)) return;
  if (getsockopt(run->dial.fd, SOL_SOCKET, SO_ERROR, &error, &length) < 0) error = errno;
  judge(warden, run, error);
}

void connection_tick(struct warden *warden)
{
  for (size_t i = 0; i < warden->run_count; i++) {
    struct run *run = warden->runs[i];
    if (connection_is_dialing(run) && clock_now_ms() >= run->dial.give_up_ms) refuse(warden, run, ETIMEDOUT);
  }
}

int connection_wait_ms(const struct warden *warden)
{
  int64_t first = INT64_MAX;
  for (size_t i = 0; i < warden->run_count; i++) {
    const struct run *run = warden->runs[i];
    if (connection_is_dialing(run) && run->dial.give_up_ms < first) first = run->dial.give_up_ms;
  }
  if (first == INT64_MAX) return -1;
  int64_t wait = first - clock_now_ms();
  return wait < 0 ? 0 : (int)wait;
}

void connection_note(struct run *run, int error)
{
  if (run->connection && !run->dial.error) run->dial.error = (uint32_t)error;
}

void connection_break(struct warden *warden, struct run *run, int error)
{
  connection_note(run, error);
  feed_close(warden, run);
  if (run->taps[0].fd >= 0) close(run->taps[0].fd);
  run->taps[0].fd = -1;
}

void connection_abort(struct warden *warden, struct run *run)
{
  if (connection_is_dialing(run)) return refuse(warden, run, ECANCELED);
  if (run->phase == RUN_OVER) return;
  connection_break(warden, run, ECONNABORTED);
  connection_settle(warden, run);
}

void connection_settle(struct warden *warden, struct run *run)
{
  if (run->phase != RUN_STARTED || run->taps[0].fd >= 0 || run->feed.fd >= 0) return;
  uint8_t payload[4];
  wire_put_u32(payload, run->dial.error);
  queue_frame(&warden->queue, &(struct frame){ .type = FRAME_CLOSED, .run = run->id, .length = sizeof payload, .payload = payload });
  run->phase = RUN_OVER;
}
