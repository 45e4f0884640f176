/*
 * A connection that is taken in is a run like one that the engine asked for (connection.c), but for its number, which is the warden's own, its window, and its
 * place: guests can open as many as they like, so there is a share for them, and no run of the engine's ever waits for it. Who finds no place waits in the
 * kernel's backlog. What they leave unread the warden holds, and has little room: so only a few have a window with which much is moved fast. A question of DNS has no run, only one of few places where it is remembered who asked, until its answer.
 *
 * Nothing is parsed, and nothing that goes wrong with a socket here ends the warden: a door at which the kernel has no more to give is shut for a moment.
 */
#include "guests.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "clock.h"
#include "die.h"
#include "fds.h"
#include "wire.h"

enum { PAUSE_MS = 50, ADDRESS_BYTES = 16, ACCEPTED_BYTES = 4 + ADDRESS_BYTES + 4 };

union control {
  struct cmsghdr aligned;
  char bytes[CMSG_SPACE(sizeof(struct in6_pktinfo)) + CMSG_SPACE(sizeof(struct in_pktinfo))];
};

void guests_open_doors(struct warden *warden)
{
  const char *object = NULL;
  warden->own_last = WARDEN_OWN_FIRST - 1;
  if (doors_open(&warden->doors_plan, &warden->doors, &object) < 0) die("open", object);
}

static struct question *place_for(struct warden *warden)
{
  for (size_t i = 0; i < WARDEN_QUESTIONS_MOST; i++)
    if (!warden->questions[i].id) return &warden->questions[i];
  return NULL;
}

bool guests_may_enter(const struct warden *warden, const struct door *door)
{
  if (warden->own_last == UINT32_MAX || warden->doors_shut_until_ms || queue_length(&warden->queue) >= QUEUE_OUTPUT_PAUSE) return false;
  return door->kind == DOOR_QUERIES ? warden->question_count < WARDEN_QUESTIONS_MOST : warden->accepted_count < WARDEN_ACCEPTED_MOST;
}

int guests_wait_ms(const struct warden *warden)
{
  if (!warden->doors_shut_until_ms) return -1;
  int64_t wait = warden->doors_shut_until_ms - clock_now_ms();
  return wait < 0 ? 0 : (int)wait;
}

/* Without this a door that always has something and never yields it would be asked without a pause. */
static void shut_for_a_moment(struct warden *warden)
{
  warden->doors_shut_until_ms = clock_now_ms() + PAUSE_MS;
}

/* Where the program meant to go, which for it is the other side. */
static bool write_place(int fd, uint8_t *at)
{
  union {
    struct sockaddr any;
    struct sockaddr_in four;
    struct sockaddr_in6 six;
  } place = { 0 };
  socklen_t length = sizeof place;
  if (getsockname(fd, &place.any, &length) < 0) return false;
  const bool six = place.any.sa_family == AF_INET6, mapped = six && IN6_IS_ADDR_V4MAPPED(&place.six.sin6_addr);
  const uint8_t *address = six ? place.six.sin6_addr.s6_addr + (mapped ? 12 : 0) : (const uint8_t *)&place.four.sin_addr;
  const uint16_t port = ntohs(place.four.sin_port);
  at[0] = six && !mapped ? 6 : 4;
  at[1] = (uint8_t)port;
  at[2] = (uint8_t)(port >> 8);
  memcpy(at + 3, address, at[0] == 6 ? 16 : 4);
  return true;
}

/* A descriptor for each direction. False when there is no memory for it. */
static bool enlist(struct warden *warden, const struct door *door, const int ends[2])
{
  struct run *run = calloc(1, sizeof *run);
  uint8_t payload[ACCEPTED_BYTES] = { door->kind };
  if (!run || !write_place(ends[0], payload + 1)) {
    free(run);
    return false;
  }
  const uint32_t window = warden->wide_count < WARDEN_WIDE_MOST ? FRAME_WINDOW_WIDE : FRAME_WINDOW_NARROW;
  const struct tap none = { .fd = -1, .credit = window };
  *run = (struct run){ .id = ++warden->own_last, .connection = true, .accepted = true, .phase = RUN_STARTED, .link = -1, .dial.fd = -1, .window = window, .taps = { none, none, none } };
  run->taps[0].fd = ends[0];
  run->feed = (struct feed){ .fd = ends[1], .credit = FRAME_WINDOW, .room = FRAME_WINDOW };
  warden->runs[warden->run_count++] = run;
  warden->accepted_count++;
  warden->wide_count += window == FRAME_WINDOW_WIDE;
  wire_put_u32(payload + 4 + ADDRESS_BYTES, window);
  queue_frame(&warden->queue, &(struct frame){ .type = FRAME_ACCEPTED, .run = run->id, .length = sizeof payload, .payload = payload });
  return true;
}

static void take_in(struct warden *warden, const struct door *door)
{
  int ends[2] = { accept4(door->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC), -1 };
  if (ends[0] < 0 && (errno == EAGAIN || errno == EINTR || errno == ECONNABORTED)) return;
  if (ends[0] < 0) return shut_for_a_moment(warden);
  ends[1] = fcntl(ends[0], F_DUPFD_CLOEXEC, 3);
  if (ends[1] >= 0 && fds_leave_room(ends[0]) && fds_leave_room(ends[1]) && enlist(warden, door, ends)) return;
  for (int i = 0; i < 2; i++)
    if (ends[i] >= 0) close(ends[i]);
  shut_for_a_moment(warden);
}

/* At which of its addresses it was asked: the answer must come from there. */
static void note_place(struct question *question, struct msghdr *header)
{
  for (struct cmsghdr *part = CMSG_FIRSTHDR(header); part; part = CMSG_NXTHDR(header, part)) {
    if (part->cmsg_level == IPPROTO_IPV6 && part->cmsg_type == IPV6_PKTINFO) memcpy(&question->six, CMSG_DATA(part), sizeof question->six);
    if (part->cmsg_level == IPPROTO_IP && part->cmsg_type == IP_PKTINFO) memcpy(&question->four, CMSG_DATA(part), sizeof question->four);
  }
  question->six.ipi6_ifindex = 0;
  question->four = (struct in_pktinfo){ .ipi_spec_dst = question->four.ipi_addr };
}

static void take_question(struct warden *warden, const struct doors *doors, const struct door *door)
{
  uint8_t bytes[FRAME_DATAGRAM_MOST + 1];
  union control control;
  struct question *question = place_for(warden), asked = { .doors = doors, .fd = door->fd };
  struct iovec part = { .iov_base = bytes, .iov_len = sizeof bytes };
  struct msghdr header = { .msg_name = &asked.peer, .msg_namelen = sizeof asked.peer, .msg_iov = &part, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof control.bytes };
  ssize_t got = recvmsg(door->fd, &header, 0);
  if (got < 0 && errno != EAGAIN && errno != EINTR) shut_for_a_moment(warden);
  if (got <= 0 || got > FRAME_DATAGRAM_MOST || !question) return;
  note_place(&asked, &header);
  asked.peer_length = header.msg_namelen;
  asked.id = ++warden->own_last;
  *question = asked;
  warden->question_count++;
  queue_frame(&warden->queue, &(struct frame){ .type = FRAME_QUERY, .run = asked.id, .length = (uint32_t)got, .payload = bytes });
}

void guests_serve(struct warden *warden, const struct run *liner, const struct door *door)
{
  if (!guests_may_enter(warden, door)) return;
  if (door->kind == DOOR_QUERIES) take_question(warden, liner ? liner->doors : &warden->doors, door);
  else take_in(warden, door);
}

void guests_tick(struct warden *warden)
{
  if (warden->doors_shut_until_ms && clock_now_ms() >= warden->doors_shut_until_ms) warden->doors_shut_until_ms = 0;
}

static void forget(struct warden *warden, struct question *question)
{
  question->id = 0;
  warden->question_count--;
}

static void reply(const struct question *question, const struct frame *frame)
{
  union control control = { .bytes = { 0 } };
  const bool six = question->peer.any.sa_family == AF_INET6;
  struct iovec part = { .iov_base = (void *)frame->payload, .iov_len = frame->length };
  struct msghdr header = { .msg_name = (void *)&question->peer, .msg_namelen = question->peer_length, .msg_iov = &part, .msg_iovlen = 1, .msg_control = control.bytes };
  header.msg_controllen = six ? CMSG_SPACE(sizeof question->six) : CMSG_SPACE(sizeof question->four);
  struct cmsghdr *from = CMSG_FIRSTHDR(&header);
  *from = (struct cmsghdr){ .cmsg_level = six ? IPPROTO_IPV6 : IPPROTO_IP, .cmsg_type = six ? IPV6_PKTINFO : IP_PKTINFO };
  from->cmsg_len = six ? CMSG_LEN(sizeof question->six) : CMSG_LEN(sizeof question->four);
  memcpy(CMSG_DATA(from), six ? (const void *)&question->six : (const void *)&question->four, six ? sizeof question->six : sizeof question->four);
  /* Whoever asked may be gone, or take nothing: datagrams may be lost. */
  sendmsg(question->fd, &header, MSG_DONTWAIT | MSG_NOSIGNAL);
}

const char *guests_answer(struct warden *warden, const struct frame *frame)
{
  if (frame->run < WARDEN_OWN_FIRST || frame->run > warden->own_last) return "ANSWER to what was never asked";
  for (size_t i = 0; i < WARDEN_QUESTIONS_MOST; i++) {
    struct question *question = &warden->questions[i];
    if (question->id != frame->run) continue;
    if (frame->length) reply(question, frame);
    forget(warden, question);
  }
  return NULL;
}

const char *guests_listen(struct warden *warden, const struct frame *frame)
{
  struct doors_plan *plan = &warden->doors_plan;
  if (!plan->direct) return "LISTEN in a cell without direct doors";
  plan->port_count = (uint16_t)(frame->length / 2);
  for (uint16_t i = 0; i < plan->port_count; i++) plan->ports[i] = wire_u16(frame->payload + 2 * i);
  doors_replace_ports(plan, &warden->doors);
  return NULL;
}

void guests_leave(struct warden *warden, const struct run *run)
{
  warden->accepted_count -= run->accepted;
  warden->wide_count -= run->accepted && run->window == FRAME_WINDOW_WIDE;
}

int guests_keep_doors(struct run *liner, const struct doors *doors)
{
  /* The kernel leaves descriptors out that there is no room for. */
  if (!doors) return EMFILE;
  const bool expected = liner->liner && !liner->doors && liner->phase == RUN_STARTING;
  struct doors *kept = expected ? malloc(sizeof *kept) : NULL, all = *doors;
  int error = !expected ? EPROTO : kept ? 0 : ENOMEM;
  for (size_t i = 0; i < all.count && !error; i++)
    if (!fds_leave_room(all.list[i].fd)) error = EMFILE;
  if (error) {
    doors_close(&all);
    free(kept);
    return error;
  }
  *kept = all;
  liner->doors = kept;
  return 0;
}

void guests_forget_doors(struct warden *warden, struct run *liner)
{
  if (!liner->doors) return;
  for (size_t i = 0; i < WARDEN_QUESTIONS_MOST; i++)
    if (warden->questions[i].id && warden->questions[i].doors == liner->doors) forget(warden, &warden->questions[i]);
  doors_close(liner->doors);
  free(liner->doors);
  liner->doors = NULL;
}
