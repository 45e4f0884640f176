/* Bytes waiting to leave through the channel. Fixed size; what fills it is stopped long before (see mux.c). */
#ifndef GLOVEBOX_QUEUE_H
#define GLOVEBOX_QUEUE_H

#include <stddef.h>
#include <stdint.h>

#include "frame.h"

enum {
  QUEUE_ROOM = 2 * 1024 * 1024,
  QUEUE_OUTPUT_PAUSE = 256 * 1024, /* above it nothing is read from programs */
  QUEUE_INPUT_PAUSE = 1024 * 1024, /* above it nothing is read from the engine: its answers would not fit */
};

struct queue {
  uint8_t *bytes;
  size_t head, tail;
};

static inline size_t queue_length(const struct queue *queue)
{
  return queue->tail - queue->head;
}

/* A place for that many bytes at the end; they count once queue_commit says so. Dies when there is none. */
uint8_t *queue_reserve(struct queue *queue, size_t length);
void queue_commit(struct queue *queue, size_t length);
/* Appends the header and, if it is not NULL, the payload. */
void queue_frame(struct queue *queue, const struct frame *frame);
/* Writes what the descriptor takes without waiting. 0, or -1 with errno when the other end is gone. */
int queue_flush(struct queue *queue, int fd);

#endif
