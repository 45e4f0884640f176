/*
 * Bytes waiting to leave through the channel. Fixed size; what fills it is stopped long before (see mux.c).
 *
 * What a program prints in bulk is not copied on its way: it moves from the program's pipe into one of the queue's own, so that nobody else can take
 * it back, and from there into the channel. There is one such piece at a time, with a place among the other bytes.
 */
#ifndef GLOVEBOX_QUEUE_H
#define GLOVEBOX_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "frame.h"

enum {
  QUEUE_ROOM = 2 * 1024 * 1024,
  QUEUE_OUTPUT_PAUSE = 256 * 1024, /* above it nothing is read from programs */
  QUEUE_INPUT_PAUSE = 1024 * 1024, /* above it nothing is read from the engine: its answers would not fit */
};

/* Bytes in a pipe. */
struct held {
  int ends[2];
  bool is_open, is_useless; /* useless: there is no pipe, or the channel takes nothing from one */
  size_t at; /* where among the other bytes it is to leave */
  size_t length;
};

struct queue {
  uint8_t *bytes;
  size_t head, tail;
  struct held held;
};

static inline size_t queue_length(const struct queue *queue)
{
  return queue->tail - queue->head + queue->held.length;
}

/* A place for that many bytes at the end; they count once queue_commit says so. Dies when there is none. */
uint8_t *queue_reserve(struct queue *queue, size_t length);
void queue_commit(struct queue *queue, size_t length);
/* Appends the header and, if it is not NULL, the payload. */
void queue_frame(struct queue *queue, const struct frame *frame);
/* Whether queue_take may be called. */
bool queue_can_take(struct queue *queue);
/*
 * Appends this OUTPUT with what is in the pipe, `most` bytes at most. As read(2): 0 at its end, -1 with errno; EAGAIN when nothing is there.
 */
ssize_t queue_take(struct queue *queue, struct frame *frame, int pipe, size_t most);
/* Writes what the descriptor takes without waiting. 0, or -1 with errno when the other end is gone. */
int queue_flush(struct queue *queue, int fd);

#endif
