/* The worker's two streams: requests and content in, replies out. Replies are gathered and written blocking, so a slow reader holds the worker. */
#ifndef GLOVEBOX_FILES_FRAMES_H
#define GLOVEBOX_FILES_FRAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "files-request.h"

enum reply_type {
  REPLY_DONE = 0x80,
  REPLY_ERROR = 0x81,
  REPLY_DATA = 0x82,
  REPLY_ENTRY = 0x83,
  REPLY_EVENT = 0x84,
  REPLY_MATCH = 0x85,
  REPLY_PROCESS = 0x86,
};

enum {
  FILES_NAME_MOST = 16384, /* of a path below what was asked for: a deep tree must not make long replies of short names */
  FILES_ERROR_OBJECT_MOST = 4200,
  FILES_HASH_LENGTH = 32,
  FILES_IN_ROOM = 2 * (FILES_HEADER + FILES_PAYLOAD_MOST),
};

/* Counts of replies carry this beside them: something is missing from what was told. */
#define FILES_INCOMPLETE (UINT64_C(1) << 63)

struct files {
  int input, output, layers;
  bool over;         /* nobody reads any more, or nothing comes any more */
  const char *fault; /* what the engine did wrong */
  uint8_t *in, *out;
  size_t head, tail; /* what has arrived of `in` and is not yet taken */
  size_t content;    /* of the CONTENT that has begun, what is not yet taken */
  bool sparing;      /* no more is read than needed: what follows may be moved */
  size_t fill, frame; /* what waits in `out`, and where its last frame begins */
};

struct frame_in {
  uint8_t type;
  const uint8_t *payload; /* until the next is taken */
  size_t length;
};

bool files_open(struct files *files);
void files_close(struct files *files);

/* Waits for the next whole request. False when there is none: the input has ended or is malformed. */
bool files_take(struct files *files, struct frame_in *frame);
/* Waits for content: what of its frame is not taken yet; 0 at its end, or when the worker is over. */
size_t files_content_left(struct files *files);
/* Waits for the next piece of content, as much as has arrived; false at its end, or when the worker is over. */
bool files_take_content(struct files *files, struct frame_in *piece);
/* Whether the content that is left is worth moving, and none of it is in our memory. */
bool files_content_is_bulk(const struct files *files);
/* Moves what has arrived of it, one byte at least, into an empty pipe. 0 when the worker is over, -1 with errno when it cannot be done. */
ssize_t files_move_content(struct files *files, int pipe);
/* After a failure: what is still to come of it. */
void files_skip_content(struct files *files);

void reply_begin(struct files *files, uint8_t type);
void reply_u32(struct files *files, uint32_t value);
void reply_u64(struct files *files, uint64_t value);
void reply_bytes(struct files *files, const void *bytes, size_t length);
void reply_text(struct files *files, const char *text, size_t length);
/* Room for a whole payload, to be filled in place and counted with reply_filled. */
uint8_t *reply_room(struct files *files);
void reply_filled(struct files *files, size_t length);
void reply_end(struct files *files);
/* A frame that was begun and is not wanted. */
void reply_drop(struct files *files);
bool reply_flush(struct files *files);

/* Content of one DATA, and the empty pipe in which it is put behind its header. It has room for both. */
struct passed {
  int content, into, out_of;
  size_t length;
};

/* One DATA whose content lies in a pipe. False when moving it was refused: then it was copied, and so should be what follows. */
bool reply_passed(struct files *files, const struct passed *passed);

void reply_done(struct files *files, uint64_t count);
/* Of `errno`: `verb object`; of ENOSPC also what has run out. */
void reply_error(struct files *files, const char *verb, const char *object);

struct told {
  const struct stat *stat;
  const char *name;
  size_t name_length;
  const char *target;
  const uint8_t *hash;
};

void reply_entry(struct files *files, const struct told *told);

#endif
