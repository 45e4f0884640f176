#include "queue.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "die.h"
#include "fds.h"
#include "pages.h"

uint8_t *queue_reserve(struct queue *queue, size_t length)
{
  if (!queue->bytes && !(queue->bytes = pages_map(QUEUE_ROOM))) die("allocate", "the channel's queue");
  if (QUEUE_ROOM - queue->tail < length && queue->head) {
    memmove(queue->bytes, queue->bytes + queue->head, queue->tail - queue->head);
    queue->held.at -= queue->head;
    queue->tail -= queue->head;
    queue->head = 0;
  }
  if (QUEUE_ROOM - queue->tail < length) {
    errno = ENOBUFS;
    die("queue a frame on", "the channel");
  }
  return queue->bytes + queue->tail;
}

void queue_commit(struct queue *queue, size_t length)
{
  queue->tail += length;
}

void queue_frame(struct queue *queue, const struct frame *frame)
{
  uint8_t *at = queue_reserve(queue, FRAME_HEADER + (size_t)frame->length);
  frame_put_header(at, frame);
  if (frame->length) memcpy(at + FRAME_HEADER, frame->payload, frame->length);
  queue_commit(queue, FRAME_HEADER + (size_t)frame->length);
}

static void open_held(struct held *held)
{
  held->is_useless = pipe2(held->ends, O_CLOEXEC | O_NONBLOCK) < 0;
  held->is_open = !held->is_useless;
  if (held->is_open) fds_widen_pipe(held->ends[1]);
}

bool queue_can_take(struct queue *queue)
{
  struct held *held = &queue->held;
  if (!held->is_open && !held->is_useless) open_held(held);
  return !held->is_useless && !held->length;
}

ssize_t queue_take(struct queue *queue, struct frame *frame, int pipe, size_t most)
{
  uint8_t *at = queue_reserve(queue, FRAME_HEADER);
  ssize_t got = splice(pipe, NULL, queue->held.ends[1], NULL, most, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
  if (got <= 0) return got;
  frame->length = (uint32_t)got;
  frame_put_header(at, frame);
  queue_commit(queue, FRAME_HEADER);
  queue->held.at = queue->tail;
  queue->held.length = (size_t)got;
  return got;
}

/* The channel takes nothing from pipes: what is held becomes bytes like the others, and nothing is held any more. */
static void copy_held(struct queue *queue)
{
  struct held *held = &queue->held;
  size_t length = held->length;
  queue_reserve(queue, length);
  uint8_t *at = queue->bytes + held->at;
  memmove(at + length, at, queue->tail - held->at);
  queue->tail += length;
  held->length = 0;
  held->is_useless = true;
  for (size_t done = 0; done < length;) {
    ssize_t got = read(held->ends[0], at + done, length - done);
    if (got <= 0 && errno != EINTR) die("read what is held for", "the channel");
    if (got > 0) done += (size_t)got;
  }
}

/* What is next: bytes up to the place of what is held, that itself, bytes again. As write(2). */
static ssize_t flush_next(struct queue *queue, int fd)
{
  struct held *held = &queue->held;
  if (held->length && queue->head == held->at) {
    ssize_t moved = splice(held->ends[0], NULL, fd, NULL, held->length, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
    if (moved > 0) held->length -= (size_t)moved;
    if (moved >= 0 || errno != EINVAL) return moved;
    copy_held(queue);
  }
  ssize_t written = write(fd, queue->bytes + queue->head, (held->length ? held->at : queue->tail) - queue->head);
  if (written > 0) queue->head += (size_t)written;
  return written;
}

int queue_flush(struct queue *queue, int fd)
{
  while (queue_length(queue))
    if (flush_next(queue, fd) < 0 && errno != EINTR) return errno == EAGAIN ? 0 : -1;
  queue->head = queue->tail = 0;
  return 0;
}
