/*
 * The warden reads of a large STDIN no more than its header; the rest moves from the channel into the worker's pipe.
 *
 *   moving ──the pipe is full──▶ held up ──PATIENCE_MS, of one frame──▶ copying
 *     ▲───────it has room──────────┘
 *
 * While it is held up nothing that lies behind it in the channel is heard, a KILL neither, so that does not last: a worker that was stopped, or is slow, gets
 * the rest as any program does, by way of its feed, which has room for all that it was given credit for. The run may end at any time; what is left is
 * then read and dropped.
 */
#include "passing.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "clock.h"
#include "feed.h"
#include "runs.h"

/* From LEAST on it costs less than copying. Between two large frames comes a small one. */
enum { LEAST = 32768, PATIENCE_MS = 10, SPARING_FRAMES = 2 };

static bool may_begin(const struct warden *warden, const struct frame *frame)
{
  struct run *run = warden->inbox.passing.useless ? NULL : runs_find(warden, frame->run);
  /* What is beyond its credit is malformed, and found so once it is whole. */
  return run && feed_may_pass(run) && frame->length <= run->feed.credit;
}

void passing_begin(struct warden *warden, const struct frame *frame)
{
  struct inbox *inbox = &warden->inbox;
  struct frame here = *frame;
  if (frame->type != FRAME_STDIN) return;
  here.length = (uint32_t)(inbox->tail - inbox->head - FRAME_HEADER);
  if (frame->length - here.length < LEAST) return;
  inbox->passing.sparing = 0;
  if (!may_begin(warden, frame)) return;
  inbox->passing = (struct passing){ .run = frame->run, .left = frame->length - here.length, .sparing = SPARING_FRAMES };
  inbox->head = inbox->tail = 0;
  if (here.length) warden->fatal = feed_take(warden, runs_find(warden, frame->run), &here);
}

static void note_full(struct passing *passing)
{
  passing->full = true;
  if (!passing->until_ms) passing->until_ms = clock_now_ms() + PATIENCE_MS;
}

/* False when it has to be copied. */
static bool move(struct warden *warden, struct run *run)
{
  struct passing *passing = &warden->inbox.passing;
  bool was_full = passing->full;
  passing->full = false;
  if (run->feed.length) {
    note_full(passing);
    return true;
  }
  ssize_t moved = splice(0, NULL, run->feed.fd, NULL, passing->left, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
  if (moved > 0) {
    passing->left -= (size_t)moved;
    feed_passed(warden, run, (size_t)moved);
    return true;
  }
  if (moved == 0) warden->ending = true;
  /* It was the channel that had nothing, if there was room in the pipe. */
  else if (errno == EAGAIN && !was_full) note_full(passing);
  else if (errno != EAGAIN && errno != EINTR) {
    passing->useless = errno != EPIPE;
    return false;
  }
  return true;
}

static void copy(struct warden *warden, struct run *run)
{
  struct inbox *inbox = &warden->inbox;
  struct passing *passing = &inbox->passing;
  ssize_t got = read(0, inbox->bytes, passing->left < inbox->room ? passing->left : inbox->room);
  if (got < 0 && (errno == EINTR || errno == EAGAIN)) return;
  if (got <= 0) {
    warden->ending = true;
    return;
  }
  passing->left -= (size_t)got;
  if (!run || run->phase == RUN_OVER) return;
  warden->fatal = feed_take(warden, run, &(struct frame){ .type = FRAME_STDIN, .run = run->id, .length = (uint32_t)got, .payload = inbox->bytes });
}

void passing_hear(struct warden *warden)
{
  struct passing *passing = &warden->inbox.passing;
  struct run *run = runs_find(warden, passing->run);
  if (run && !passing->copying && feed_may_pass(run) && move(warden, run)) return;
  passing->full = false;
  passing->copying = true;
  copy(warden, run);
}

bool passing_is_held_up(const struct warden *warden)
{
  return passing_is_under_way(warden) && warden->inbox.passing.full;
}

bool passing_waits_for(const struct warden *warden, const struct run *run)
{
  return passing_is_held_up(warden) && run->id == warden->inbox.passing.run;
}

int passing_wait_ms(const struct warden *warden)
{
  if (!passing_is_held_up(warden)) return -1;
  int64_t left = warden->inbox.passing.until_ms - clock_now_ms();
  return left > 0 ? (int)left : 0;
}

void passing_tick(struct warden *warden)
{
  struct passing *passing = &warden->inbox.passing;
  if (!passing_is_held_up(warden) || passing_wait_ms(warden) > 0) return;
  passing->full = false;
  passing->copying = true;
}
