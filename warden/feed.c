#include "feed.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "connection.h"
#include "fds.h"
#include "pages.h"
#include "process-table.h"
#include "terminal.h"
#include "wire.h"

/* What a program that ends has not taken is not to look as if it had. */
static void give_back(struct warden *warden, struct run *run, size_t bytes)
{
  if (!bytes || run->feed.leaving || run->doom.wanted || run->phase >= RUN_EXITED) return;
  uint8_t payload[4];
  wire_put_u32(payload, (uint32_t)bytes);
  run->feed.credit += (uint32_t)bytes;
  queue_frame(&warden->queue, &(struct frame){ .type = FRAME_CREDIT, .run = run->id, .length = sizeof payload, .payload = payload });
}

/* Of the rings of all runs so much may stay although it holds nothing: whoever is slower than what comes has its ring filled and emptied all the time. */
enum { SPANS_KEPT = 1048576, SPAN_STEP = 65536 };

static void release(struct warden *warden, struct feed *feed)
{
  pages_unmap(feed->bytes, feed->room);
  feed->bytes = NULL;
  feed->head = feed->length = 0;
  warden->spans -= feed->span;
  feed->span = 0;
}

void feed_close(struct warden *warden, struct run *run)
{
  struct feed *feed = &run->feed;
  if (feed->fd >= 0) close(feed->fd);
  feed->fd = -1;
  size_t dropped = feed->length + feed->owed;
  feed->owed = 0;
  release(warden, feed);
  give_back(warden, run, dropped);
}

bool feed_is_waiting(const struct feed *feed)
{
  return feed->fd >= 0 && (feed->length || feed->ending);
}

/* Before its start is heard a program may have closed its input, or ended, and which of the two it was cannot be told yet. */
bool feed_is_served(const struct run *run)
{
  return run->phase >= RUN_STARTED;
}

/* All was handed on: what stands for its end follows. */
static void end(struct warden *warden, struct run *run)
{
  if (run->terminal && !terminal_type_end(&run->feed)) return;
  if (run->connection && shutdown(run->feed.fd, SHUT_WR) < 0) connection_note(run, errno);
  feed_close(warden, run);
}

/* Nobody reads any more: the program closed its input, or is about to end, which closes it before anyone is told of the end. */
static void lose_reader(struct warden *warden, struct run *run)
{
  connection_note(run, errno);
  run->feed.leaving = !run->connection && process_is_leaving(run->program);
  feed_close(warden, run);
}

void feed_lose(struct warden *warden, struct run *run)
{
  errno = ECONNRESET;
  lose_reader(warden, run);
}

/* A program that is fed without a pause gets a wider pipe, so that less of the time goes into waking it. */
static bool widen(struct feed *feed)
{
  if (feed->widened) return false;
  feed->widened = true;
  return feed->wide = fds_widen_pipe(feed->fd);
}

/* Hands on what is taken without waiting: that many bytes, or -1 when the other end is gone. */
static ssize_t hand_on(struct feed *feed, const uint8_t *bytes, size_t length)
{
  size_t handed = 0;
  while (handed < length) {
    ssize_t written = write(feed->fd, bytes + handed, length - handed);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0 && errno == EAGAIN) break;
    if (written < 0) return -1;
    handed += (size_t)written;
  }
  if (handed) feed->last = bytes[handed - 1];
  return (ssize_t)handed;
}

/* Each return of credit wakes the engine; but what a pipe takes is to be given back whether or not its program reads. */
enum { OWED_LEAST = 524288, OWED_LEAST_CONNECTION = 131072, OWED_LEAST_EMPTY = FRAME_SHARE_LEAST / 2 };

static void settle(struct warden *warden, struct run *run)
{
  const size_t bytes = run->feed.owed;
  run->feed.owed = 0;
  give_back(warden, run, bytes);
}

/* To a connection once a round: see feed_settle. */
static void owe(struct warden *warden, struct run *run, size_t bytes)
{
  struct feed *feed = &run->feed;
  feed->owed += (uint32_t)bytes;
  if (!run->connection && feed->owed >= OWED_LEAST) settle(warden, run);
}

/* Only of our own process, which keeps nothing: pages that pass are counted to no limit of a guest's, who could hold them in pipes of its own (tee). */
bool feed_may_pass(struct run *run)
{
  struct feed *feed = &run->feed;
  if (!run->worker || run->phase != RUN_STARTED || feed->fd < 0 || feed->ending) return false;
  widen(feed);
  return feed->wide;
}

void feed_passed(struct warden *warden, struct run *run, size_t bytes)
{
  run->feed.credit -= (uint32_t)bytes;
  owe(warden, run, bytes);
}

/* Of what connections hold together the engine may allow one no more than the least: half of that must never be owed while nothing waits here. */
void feed_settle(struct warden *warden, struct run *run)
{
  struct feed *feed = &run->feed;
  if (run->connection && feed->owed >= (feed->length ? OWED_LEAST_CONNECTION : OWED_LEAST_EMPTY)) settle(warden, run);
}

void feed_pump(struct warden *warden, struct run *run)
{
  struct feed *feed = &run->feed;
  if (!feed_is_served(run)) return;
  while (feed->length) {
    size_t straight = feed->span - feed->head, most = feed->length < straight ? feed->length : straight;
    const size_t from = feed->head;
    ssize_t handed = hand_on(feed, feed->bytes + from, most);
    if (handed < 0) return lose_reader(warden, run);
    feed->head = (feed->head + (size_t)handed) % feed->span;
    feed->length -= (size_t)handed;
    /* What is not read for long is held for long, and is not to take more room than it has bytes. */
    /* gVisor forgets more than it is told to, now and then. */
    if (feed->length && warden->spans > SPANS_KEPT && !warden->told) pages_forget(feed->bytes, from, (size_t)handed);
    owe(warden, run, (size_t)handed);
    if ((size_t)handed < most && (feed->length < FDS_PIPE_USUAL || !widen(feed))) break;
  }
  if (!feed->length) feed->head = 0;
  if (!feed->length && warden->spans > SPANS_KEPT) release(warden, feed);
  if (!feed->length && feed->ending && feed->fd >= 0) end(warden, run);
}

/* What lies at the end stays there. */
static void widen_span(struct warden *warden, struct feed *feed, size_t needed)
{
  const size_t step = (needed - feed->span + SPAN_STEP - 1) / SPAN_STEP * SPAN_STEP, most = feed->room - feed->span, more = step < most ? step : most;
  if (feed->head + feed->length > feed->span) {
    memmove(feed->bytes + feed->head + more, feed->bytes + feed->head, feed->span - feed->head);
    feed->head += more;
  }
  feed->span += (uint32_t)more;
  warden->spans += more;
}

static void store(struct warden *warden, struct feed *feed, const struct frame *frame)
{
  if (feed->length + frame->length > feed->span) widen_span(warden, feed, feed->length + frame->length);
  size_t tail = (feed->head + feed->length) % feed->span;
  size_t straight = feed->span - tail < frame->length ? feed->span - tail : frame->length;
  memcpy(feed->bytes + tail, frame->payload, straight);
  memcpy(feed->bytes, frame->payload + straight, frame->length - straight);
  feed->length += frame->length;
}

/* While nothing waits there is no need to copy. */
static const char *take_bytes(struct warden *warden, struct run *run, const struct frame *frame)
{
  struct feed *feed = &run->feed;
  struct frame rest = *frame;
  if (!feed->length && feed_is_served(run)) {
    ssize_t handed = hand_on(feed, frame->payload, frame->length);
    if (handed < 0) {
      feed->owed += frame->length;
      lose_reader(warden, run);
      return NULL;
    }
    owe(warden, run, (size_t)handed);
    rest.payload += handed;
    rest.length -= (uint32_t)handed;
  }
  if (!rest.length) return NULL;
  if (!feed->bytes && !(feed->bytes = pages_map(feed->room))) return "no memory for input";
  store(warden, feed, &rest);
  feed_pump(warden, run);
  return NULL;
}

const char *feed_take(struct warden *warden, struct run *run, const struct frame *frame)
{
  struct feed *feed = &run->feed;
  if (frame->length > feed->credit) return "input beyond its credit";
  if (!frame->length) {
    feed->ending = true;
  } else if (feed->fd < 0 || feed->ending) {
    feed->credit -= frame->length;
    give_back(warden, run, frame->length);
    return NULL;
  } else {
    feed->credit -= frame->length;
    return take_bytes(warden, run, frame);
  }
  feed_pump(warden, run);
  return NULL;
}
