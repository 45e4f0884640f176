#include "queue.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "die.h"
#include "pages.h"

uint8_t *queue_reserve(struct queue *queue, size_t length)
{
  if (!queue->bytes && !(queue->bytes = pages_map(QUEUE_ROOM))) die("allocate", "the channel's queue");
  if (QUEUE_ROOM - queue->tail < length && queue->head) {
    memmove(queue->bytes, queue->bytes + queue->head, queue_length(queue));
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

int queue_flush(struct queue *queue, int fd)
{
  while (queue_length(queue)) {
    ssize_t written = write(fd, queue->bytes + queue->head, queue_length(queue));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return errno == EAGAIN ? 0 : -1;
    queue->head += (size_t)written;
  }
  queue->head = queue->tail = 0;
  return 0;
}
