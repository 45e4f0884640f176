#include "feed.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "connection.h"
#include "pages.h"
#include "terminal.h"
#include "wire.h"

static void give_back(struct warden *warden, struct run *run, size_t bytes)
{
  if (!bytes || run->phase == RUN_OVER) return;
  uint8_t payload[4];
  wire_put_u32(payload, (uint32_t)bytes);
  run->feed.credit += (uint32_t)bytes;
  queue_frame(&warden->queue, &(struct frame){ .type = FRAME_CREDIT, .run = run->id, .length = sizeof payload, .payload = payload });
}

static void release(struct feed *feed)
{
  pages_unmap(feed->bytes, FRAME_WINDOW);
  feed->bytes = NULL;
  feed->head = feed->length = 0;
}

void feed_close(struct warden *warden, struct run *run)
{
  struct feed *feed = &run->feed;
  if (feed->fd >= 0) close(feed->fd);
  feed->fd = -1;
  size_t dropped = feed->length;
  release(feed);
  give_back(warden, run, dropped);
}

bool feed_is_waiting(const struct feed *feed)
{
  return feed->fd >= 0 && (feed->length || feed->ending);
}

/* All was handed on: what stands for its end follows. */
static void end(struct warden *warden, struct run *run)
{
  if (run->terminal && !terminal_type_end(&run->feed)) return;
  if (run->connection && shutdown(run->feed.fd, SHUT_WR) < 0) connection_note(run, errno);
  feed_close(warden, run);
}

void feed_lose(struct warden *warden, struct run *run)
{
  connection_note(run, ECONNRESET);
  feed_close(warden, run);
}

void feed_pump(struct warden *warden, struct run *run)
{
  struct feed *feed = &run->feed;
  size_t handed = 0;
  while (feed->length) {
    size_t straight = FRAME_WINDOW - feed->head;
    ssize_t written = write(feed->fd, feed->bytes + feed->head, feed->length < straight ? feed->length : straight);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0 && errno == EAGAIN) break;
    if (written < 0) {
      connection_note(run, errno);
      feed_close(warden, run);
      break;
    }
    feed->last = feed->bytes[(feed->head + (size_t)written - 1) % FRAME_WINDOW];
    feed->head = (feed->head + (size_t)written) % FRAME_WINDOW;
    feed->length -= (size_t)written;
    handed += (size_t)written;
  }
  if (!feed->length && feed->bytes) release(feed);
  if (!feed->length && feed->ending && feed->fd >= 0) end(warden, run);
  give_back(warden, run, handed);
}

static void store(struct feed *feed, const struct frame *frame)
{
  size_t tail = (feed->head + feed->length) % FRAME_WINDOW;
  size_t straight = FRAME_WINDOW - tail < frame->length ? FRAME_WINDOW - tail : frame->length;
  memcpy(feed->bytes + tail, frame->payload, straight);
  memcpy(feed->bytes, frame->payload + straight, frame->length - straight);
  feed->length += frame->length;
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
    if (!feed->bytes && !(feed->bytes = pages_map(FRAME_WINDOW))) return "no memory for input";
    feed->credit -= frame->length;
    store(feed, frame);
  }
  feed_pump(warden, run);
  return NULL;
}
