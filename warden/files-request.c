#include "files-request.h"

#include <stdbool.h>
#include <string.h>

#include "wire.h"

/*
 * What a request is made of, in order: f flags, m a mode that may be left out, M a mode that may not, n a number, o an offset, l a length,
 * p a path, t the path it goes to, x a text.
 */
struct shape {
  uint8_t type;
  const char *fields;
  uint32_t flags;
};

static const struct shape SHAPES[] = {
  { FILES_STAT, "fp", STAT_FOLLOW | STAT_HASH },
  { FILES_READ, "olp", 0 },
  { FILES_WRITE, "fmp", WRITE_APPEND | WRITE_ATOMIC | WRITE_EXCLUSIVE },
  { FILES_LIST, "fnp", LIST_HIDDEN | LIST_HASH | LIST_ONE_FILESYSTEM | IN_LAYERS },
  { FILES_MKDIR, "mp", 0 },
  { FILES_MOVE, "fpt", COPY_EXCLUSIVE },
  { FILES_COPY, "fpt", COPY_EXCLUSIVE },
  { FILES_REMOVE, "fp", REMOVE_RECURSIVE },
  { FILES_SYMLINK, "xp", 0 },
  { FILES_CHMOD, "Mp", 0 },
  { FILES_WATCH, "fp", WATCH_RECURSIVE },
  { FILES_SEARCH, "fnpx", SEARCH_REGEX | SEARCH_IGNORE_CASE | SEARCH_HIDDEN },
  { FILES_PACK, "fp", PACK_ONE_FILESYSTEM | IN_LAYERS },
  { FILES_UNPACK, "fp", UNPACK_OWNER | UNPACK_MARKS },
  { FILES_PROCESSES, "", 0 },
};

struct cursor {
  const uint8_t *at;
  size_t left;
  const char *fault;
};

static const struct shape *shape_of(uint8_t type)
{
  for (size_t i = 0; i < sizeof SHAPES / sizeof *SHAPES; i++)
    if (SHAPES[i].type == type) return &SHAPES[i];
  return NULL;
}

const char *request_header_fault(const uint8_t *header)
{
  uint8_t type = header[4];
  if (!shape_of(type) && type != FILES_CONTENT && type != FILES_END) return "unknown frame type";
  if (header[5] || header[6] || header[7]) return "reserved field is not zero";
  uint32_t length = wire_u32(header);
  if (length > (type == FILES_CONTENT ? FILES_CONTENT_MOST : FILES_PAYLOAD_MOST) || (type == FILES_END && length)) return "wrong frame length";
  return NULL;
}

static const uint8_t *take(struct cursor *cursor, size_t length)
{
  if (cursor->fault) return NULL;
  if (cursor->left < length) {
    cursor->fault = "request ends early";
    return NULL;
  }
  const uint8_t *bytes = cursor->at;
  cursor->at += length;
  cursor->left -= length;
  return bytes;
}

static uint32_t take_u32(struct cursor *cursor)
{
  const uint8_t *bytes = take(cursor, 4);
  return bytes ? wire_u32(bytes) : 0;
}

static uint64_t take_u64(struct cursor *cursor)
{
  const uint8_t *bytes = take(cursor, 8);
  return bytes ? wire_u64(bytes) : 0;
}

static void take_text(struct cursor *cursor, char *text)
{
  uint32_t length = take_u32(cursor);
  if (!cursor->fault && length > FILES_PATH_MOST) cursor->fault = "text is too long";
  const uint8_t *bytes = take(cursor, length);
  if (!bytes) return;
  if (memchr(bytes, 0, length)) cursor->fault = "NUL in a text";
  memcpy(text, bytes, length);
  text[length] = 0;
}

/* Below the layers folder nothing leads up or elsewhere. */
static bool is_plain_below(const char *path)
{
  if (*path == '/') return false;
  for (const char *at = path; *at;) {
    size_t length = strcspn(at, "/");
    if (length == 2 && !memcmp(at, "..", 2)) return false;
    at += length + (at[length] == '/');
  }
  return true;
}

static void take_path(struct cursor *cursor, const struct shape *shape, struct request *request)
{
  take_text(cursor, request->path);
  if (cursor->fault) return;
  bool below = shape->flags & request->flags & IN_LAYERS;
  if (below ? !is_plain_below(request->path) : request->path[0] != '/') cursor->fault = below ? "path leaves the layers" : "path is not absolute";
}

static void take_mode(struct cursor *cursor, struct request *request, bool needed)
{
  request->number = take_u32(cursor);
  if (!cursor->fault && request->number > FILES_MODE_MOST && (needed || request->number != UINT32_MAX)) cursor->fault = "wrong mode";
}

static void take_field(struct cursor *cursor, const struct shape *shape, char field, struct request *request)
{
  switch (field) {
  case 'f':
    request->flags = take_u32(cursor);
    if (!cursor->fault && request->flags & ~shape->flags) cursor->fault = "unknown flag";
    break;
  case 'm':
  case 'M': take_mode(cursor, request, field == 'M'); break;
  case 'n': request->number = take_u32(cursor); break;
  case 'o':
    request->offset = take_u64(cursor);
    if (!cursor->fault && request->offset > INT64_MAX) cursor->fault = "wrong offset";
    break;
  case 'l': request->length = take_u64(cursor); break;
  case 'p': take_path(cursor, shape, request); break;
  case 't':
    take_text(cursor, request->other);
    if (!cursor->fault && request->other[0] != '/') cursor->fault = "path is not absolute";
    break;
  case 'x':
    take_text(cursor, request->other);
    if (!cursor->fault && !request->other[0]) cursor->fault = "empty text";
    break;
  }
}

const char *request_parse(uint8_t type, const uint8_t *payload, size_t length, struct request *request)
{
  const struct shape *shape = shape_of(type);
  if (!shape) return "content out of turn";
  struct cursor cursor = { .at = payload, .left = length };
  request->type = type;
  request->flags = request->number = 0;
  request->offset = request->length = 0;
  request->path[0] = request->other[0] = 0;
  for (const char *field = shape->fields; *field && !cursor.fault; field++) take_field(&cursor, shape, *field, request);
  if (!cursor.fault && cursor.left) cursor.fault = "request is too long";
  return cursor.fault;
}
