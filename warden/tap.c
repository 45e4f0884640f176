#include "tap.h"

#include <errno.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "connection.h"
#include "fds.h"
#include "terminal.h"

/* From here on moving a pipe's pages costs less than copying what they hold; a pipe has as many pages for a few bytes. */
enum { BULK_LEAST = FDS_PIPE_USUAL / 4, FULL_LEAST = FDS_PIPE_USUAL * 3 / 4 };

bool tap_is_open(const struct warden *warden, const struct tap *tap)
{
  if (tap->fd < 0) return false;
  if (tap->draining && !tap->remaining) return true; /* only its end is still to be said, which costs no credit */
  return tap->credit > 0 && queue_length(&warden->queue) < QUEUE_OUTPUT_PAUSE;
}

static void end(struct warden *warden, struct run *run, int stream)
{
  struct tap *tap = &run->taps[stream - 1];
  close(tap->fd);
  tap->fd = -1;
  queue_frame(&warden->queue, &(struct frame){ .type = FRAME_OUTPUT, .stream = (uint8_t)stream, .run = run->id });
}

/* A pipe that is found full, its pages or all of it, belongs to a program that prints faster than it is read: with more room it waits less. */
static void widen(struct tap *tap)
{
  tap->widened = true;
  tap->wide = fds_widen_pipe(tap->fd);
}

static size_t most_to_read(const struct tap *tap)
{
  size_t most = tap->credit < FRAME_CHUNK ? tap->credit : FRAME_CHUNK;
  return tap->draining && tap->remaining < most ? tap->remaining : most;
}

/* As read(2), into one frame. Only what comes in bulk is worth the calls that save the copies. */
static ssize_t take(struct queue *queue, struct frame *frame, const struct tap *tap, size_t most)
{
  if (tap->bulky && !tap->draining && queue_can_take(queue)) return queue_take(queue, frame, tap->fd, most);
  uint8_t *at = queue_reserve(queue, FRAME_HEADER + most);
  ssize_t got = read(tap->fd, at + FRAME_HEADER, most);
  if (got <= 0) return got;
  frame->length = (uint32_t)got;
  frame_put_header(at, frame);
  queue_commit(queue, FRAME_HEADER + (size_t)got);
  return got;
}

void tap_read(struct warden *warden, struct run *run, int stream)
{
  struct tap *tap = &run->taps[stream - 1];
  if (!tap_is_open(warden, tap)) return;
  struct frame frame = { .type = FRAME_OUTPUT, .stream = (uint8_t)stream, .run = run->id };
  size_t most = most_to_read(tap);
  ssize_t got = most ? take(&warden->queue, &frame, tap, most) : 0;
  if (got < 0 && errno == EINTR) return;
  /* While draining, nothing to read means that a terminal is empty, or that another reader of the guest's own took it. */
  if (got < 0 && errno == EAGAIN && !tap->draining) return;
  if (got < 0 && run->connection) return connection_break(warden, run, errno);
  if (got <= 0) {
    end(warden, run, stream);
    return;
  }
  tap->credit -= (uint32_t)got;
  if (!tap->widened && got >= FULL_LEAST) widen(tap);
  tap->bulky = tap->wide && got >= BULK_LEAST;
  if (tap->draining) tap->remaining -= (size_t)got;
}

void tap_drain(struct tap *tap)
{
  int waiting = 0;
  if (tap->fd < 0 || tap->draining) return;
  tap->draining = true;
  if (tap->terminal) tap->remaining = TERMINAL_HELD_MOST;
  else tap->remaining = ioctl(tap->fd, FIONREAD, &waiting) == 0 && waiting > 0 ? (size_t)waiting : 0;
}
