/*
 * What the engine sends: requests, which are taken whole, and content, which is taken as it comes. Much content of which nothing has been read yet can be
 * moved on instead; what lies behind it is then read no further than needed, so that more of the kind can be moved too.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "files-bytes.h"
#include "files-frames.h"
#include "wire.h"

/* From here on moving pages costs less than copying them. */
enum { BULK_LEAST = 32768 };

static size_t arrived(const struct files *files)
{
  return files->tail - files->head;
}

static bool fill_in(struct files *files, size_t wanted)
{
  if (files->head == files->tail) files->head = files->tail = 0;
  if (files->head + wanted > FILES_IN_ROOM) {
    memmove(files->in, files->in + files->head, arrived(files));
    files->tail -= files->head;
    files->head = 0;
  }
  while (arrived(files) < wanted && !files->over) {
    size_t most = files->sparing ? wanted - arrived(files) : FILES_IN_ROOM - files->tail;
    ssize_t got = read(files->input, files->in + files->tail, most);
    if (got > 0) files->tail += (size_t)got;
    else if (got < 0 && errno == EINTR) continue;
    else if (got < 0 && errno == EAGAIN && files_wait(files->input, POLLIN)) continue;
    else files->over = true;
  }
  return !files->over;
}

static bool blame(struct files *files, const char *fault)
{
  files->fault = fault;
  files->over = true;
  return false;
}

/* Waits for a header and leaves it where it is. NULL when none comes, or when it is malformed. */
static const uint8_t *await_header(struct files *files)
{
  if (files->over || !fill_in(files, FILES_HEADER)) return NULL;
  const uint8_t *header = files->in + files->head;
  const char *fault = request_header_fault(header);
  if (!fault) return header;
  blame(files, fault);
  return NULL;
}

bool files_take(struct files *files, struct frame_in *frame)
{
  const uint8_t *header = await_header(files);
  if (!header) return false;
  size_t length = wire_u32(header);
  /* Not waited for: it may be longer than there is room. */
  if (header[4] == FILES_CONTENT || header[4] == FILES_END) return blame(files, "content out of turn");
  if (!fill_in(files, FILES_HEADER + length)) return false;
  header = files->in + files->head;
  *frame = (struct frame_in){ .type = header[4], .payload = header + FILES_HEADER, .length = length };
  files->head += FILES_HEADER + length;
  return true;
}

size_t files_content_left(struct files *files)
{
  while (!files->over && !files->content) {
    const uint8_t *header = await_header(files);
    if (!header) return 0;
    if (header[4] != FILES_CONTENT && header[4] != FILES_END) return blame(files, "request amid content");
    files->content = wire_u32(header);
    files->head += FILES_HEADER;
    if (header[4] == FILES_CONTENT) continue;
    files->sparing = false;
    return 0;
  }
  return files->over ? 0 : files->content;
}

bool files_take_content(struct files *files, struct frame_in *piece)
{
  if (!files_content_left(files)) return false;
  files->sparing = false;
  if (!fill_in(files, 1)) return false;
  size_t length = arrived(files) < files->content ? arrived(files) : files->content;
  *piece = (struct frame_in){ .type = FILES_CONTENT, .payload = files->in + files->head, .length = length };
  files->head += length;
  files->content -= length;
  return true;
}

bool files_content_is_bulk(const struct files *files)
{
  return !arrived(files) && files->content >= BULK_LEAST;
}

ssize_t files_move_content(struct files *files, int pipe)
{
  for (;;) {
    ssize_t moved = splice(files->input, NULL, pipe, NULL, files->content, SPLICE_F_MOVE);
    if (moved < 0 && errno == EINTR) continue;
    if (moved < 0 && errno == EAGAIN && files_wait(files->input, POLLIN)) continue;
    if (moved < 0) return -1;
    files->over = moved == 0;
    files->sparing = true;
    files->content -= (size_t)moved;
    return moved;
  }
}

void files_skip_content(struct files *files)
{
  struct frame_in piece;
  reply_flush(files);
  while (files_take_content(files, &piece)) {}
}
