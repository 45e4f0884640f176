/*
 * The loop builds its list of descriptors anew each time from what each run wants now, so that no interest can go stale: a pipe without credit,
 * or while the channel is behind, is simply not in the list. Nothing in it waits but the poll itself.
 */
#include "mux.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "clock.h"
#include "connection.h"
#include "die.h"
#include "engine.h"
#include "feed.h"
#include "guests.h"
#include "kill.h"
#include "passing.h"
#include "runs.h"
#include "tap.h"
#include "told.h"
#include "wire.h"

/* Each slot is a descriptor. */
enum { SLOTS_MOST = WARDEN_FILES_MOST, FAREWELL_MS = 1000 };

enum source { FROM_ENGINE, TO_ENGINE, FROM_SIGNALS, FROM_KEEPER, FROM_STDOUT, FROM_STDERR, FROM_ASIDE, TO_STDIN, FROM_DIALING, FROM_DOOR };

static const enum source FROM_TAPS[RUN_TAPS] = { FROM_STDOUT, FROM_STDERR, FROM_ASIDE };

struct slot {
  enum source source;
  struct run *run;
  const struct door *door;
};

struct slots {
  struct pollfd polls[SLOTS_MOST];
  struct slot meanings[SLOTS_MOST];
  size_t count;
  size_t turn; /* whose doors are looked at first: where there is a single place left, each gets it at some time */
};

static void want(struct slots *slots, struct pollfd poll, struct slot slot)
{
  if (poll.fd < 0 || slots->count == SLOTS_MOST) return;
  slots->polls[slots->count] = poll;
  slots->meanings[slots->count++] = slot;
}

static void gather_doors(struct slots *slots, const struct warden *warden)
{
  const size_t owners = warden->run_count + 1;
  slots->turn++;
  for (size_t i = 0; i < owners; i++) {
    const size_t owner = (slots->turn + i) % owners;
    struct run *run = owner == warden->run_count ? NULL : warden->runs[owner];
    const struct doors *doors = run ? run->doors : &warden->doors;
    for (size_t each = 0; doors && each < doors->count; each++)
      if (guests_may_enter(warden, &doors->list[each]))
        want(slots, (struct pollfd){ .fd = doors->list[each].fd, .events = POLLIN }, (struct slot){ FROM_DOOR, run, &doors->list[each] });
  }
}

static bool wants_room(const struct warden *warden, const struct run *run)
{
  return feed_is_waiting(&run->feed) || (passing_waits_for(warden, run) && engine_is_heard(warden));
}

static void gather(struct slots *slots, const struct warden *warden)
{
  slots->count = 0;
  want(slots, (struct pollfd){ .fd = warden->signals, .events = POLLIN }, (struct slot){ .source = FROM_SIGNALS });
  if (queue_length(&warden->queue)) want(slots, (struct pollfd){ .fd = 1, .events = POLLOUT }, (struct slot){ .source = TO_ENGINE });
  for (size_t i = 0; i < warden->run_count; i++) {
    struct run *run = warden->runs[i];
    want(slots, (struct pollfd){ .fd = run->link, .events = POLLIN }, (struct slot){ .source = FROM_KEEPER, .run = run });
    if (feed_is_served(run)) want(slots, (struct pollfd){ .fd = run->feed.fd, .events = wants_room(warden, run) ? POLLOUT : 0 }, (struct slot){ .source = TO_STDIN, .run = run });
    if (connection_is_dialing(run)) want(slots, (struct pollfd){ .fd = run->dial.fd, .events = POLLOUT }, (struct slot){ .source = FROM_DIALING, .run = run });
    /* A program may print before its keeper's word of its start is heard; the engine must not learn of it in that order. */
    for (int tap = 0; tap < RUN_TAPS; tap++)
      if (run->phase >= RUN_STARTED && tap_is_open(warden, &run->taps[tap]))
        want(slots, (struct pollfd){ .fd = run->taps[tap].fd, .events = POLLIN }, (struct slot){ .source = FROM_TAPS[tap], .run = run });
  }
  gather_doors(slots, warden);
  /* Last, so that a run that a frame brings to its end has already been served in this round. */
  if (engine_is_heard(warden) && !passing_is_held_up(warden)) want(slots, (struct pollfd){ .fd = 0, .events = POLLIN }, (struct slot){ .source = FROM_ENGINE });
}

static void hear_signals(struct warden *warden)
{
  struct signalfd_siginfo signals[16];
  ssize_t got;
  while ((got = read(warden->signals, signals, sizeof signals)) > 0)
    for (size_t i = 0; i < (size_t)got / sizeof *signals; i++)
      if (signals[i].ssi_signo == SIGTERM) warden->ending = true;
  runs_reap(warden);
}

static void push_channel(struct warden *warden)
{
  if (queue_flush(&warden->queue, 1) < 0) warden->ending = true;
}

static void serve_slot(struct warden *warden, const struct slot *slot)
{
  switch (slot->source) {
  case FROM_ENGINE: engine_hear(warden); break;
  case TO_ENGINE: push_channel(warden); break;
  case FROM_SIGNALS: hear_signals(warden); break;
  case FROM_KEEPER: runs_hear(warden, slot->run); break;
  case FROM_STDOUT: tap_read(warden, slot->run, 1); break;
  case FROM_DIALING: connection_advance(warden, slot->run); break;
  case FROM_DOOR: guests_serve(warden, slot->run, slot->door); break;
  case FROM_STDERR: tap_read(warden, slot->run, 2); break;
  case FROM_ASIDE: tap_read(warden, slot->run, STREAM_ASIDE); break;
  case TO_STDIN:
    if (feed_is_waiting(&slot->run->feed)) feed_pump(warden, slot->run);
    else if (passing_waits_for(warden, slot->run)) passing_hear(warden);
    else if (slot->run->feed.fd >= 0) feed_lose(warden, slot->run); /* only an error wakes an idle pipe: the program has closed its end */
    break;
  }
}

/* Work that no descriptor will announce: frames that had to wait for room, and the rest of a pipe whose program has exited. */
static bool is_restless(const struct warden *warden)
{
  bool restless = engine_has_work(warden);
  for (size_t i = 0; i < warden->run_count; i++)
    for (int tap = 0; tap < RUN_TAPS; tap++)
      restless = restless || (warden->runs[i]->taps[tap].draining && tap_is_open(warden, &warden->runs[i]->taps[tap]));
  return restless;
}

static int sooner(int one, int other)
{
  return one < 0 || (other >= 0 && other < one) ? other : one;
}

/* Until something is due that no descriptor announces; -1: nothing is. */
static int wait_ms(const struct warden *warden)
{
  if (is_restless(warden)) return 0;
  return sooner(sooner(guests_wait_ms(warden), passing_wait_ms(warden)), sooner(kill_wait_ms(warden), connection_wait_ms(warden)));
}

static void serve_round(struct warden *warden, struct slots *slots)
{
  gather(slots, warden);
  int ready = poll(slots->polls, slots->count, wait_ms(warden));
  if (ready < 0 && errno != EINTR) die("poll", "the channel");
  for (size_t i = 0; ready > 0 && i < slots->count; i++)
    if (slots->polls[i].revents) serve_slot(warden, &slots->meanings[i]);
  engine_work(warden);
  bool were_strays = warden->strays;
  kill_tick(warden);
  connection_tick(warden);
  guests_tick(warden);
  passing_tick(warden);
  if (were_strays && !warden->strays) runs_reap(warden);
  runs_settle(warden);
  push_channel(warden);
}

static void hello(struct warden *warden)
{
  uint8_t payload[8 + TOLD_MOST];
  struct told *told = warden->told;
  wire_put_u32(payload, FRAME_VERSION);
  wire_put_u32(payload + 4, FRAME_WINDOW);
  if (told) told_finish(told);
  if (told) memcpy(payload + 8, told->text, told->length);
  queue_frame(&warden->queue, &(struct frame){ .type = FRAME_HELLO, .length = 8 + (told ? (uint32_t)told->length : 0), .payload = payload });
}

/* An engine that does not read for a while loses the explanation, not the ending. */
static void bid_farewell(struct warden *warden)
{
  queue_frame(&warden->queue, &(struct frame){ .type = FRAME_FATAL, .length = (uint32_t)strlen(warden->fatal), .payload = (const uint8_t *)warden->fatal });
  for (int64_t left, until = clock_now_ms() + FAREWELL_MS; queue_length(&warden->queue) && (left = until - clock_now_ms()) > 0;) {
    struct pollfd channel = { .fd = 1, .events = POLLOUT };
    if (poll(&channel, 1, (int)left) < 0 && errno != EINTR) return;
    if (queue_flush(&warden->queue, 1) < 0) return;
  }
}

void mux_serve(struct warden *warden)
{
  struct slots *slots = calloc(1, sizeof *slots);
  if (!slots) die("allocate", "the poll list");
  hello(warden);
  push_channel(warden);
  while (!warden->ending && !warden->fatal) serve_round(warden, slots);
  if (warden->fatal) bid_farewell(warden);
  free(slots);
}
