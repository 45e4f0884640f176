#include "start.h"

#include <stdlib.h>
#include <string.h>

#include "wire.h"

enum { STDIN_FED = 1, GATE = 2, TERMINAL = 4, WORKER = 8, LAYERS = 16, LATER = 32, ASIDE = 64, LINER = 128, FORKED = 256, ZYGOTE = 512, ALL_FLAGS = 1023 };

struct cursor {
  const uint8_t *at;
  size_t left;
  const char *why;
};

struct strings {
  char **list;
  char *text; /* where the next copy goes */
};

static const uint8_t *take(struct cursor *cursor, size_t length)
{
  if (cursor->why) return NULL;
  if (cursor->left < length) {
    cursor->why = "START is cut short";
    return NULL;
  }
  const uint8_t *at = cursor->at;
  cursor->at += length;
  cursor->left -= length;
  return at;
}

static uint32_t take_u32(struct cursor *cursor)
{
  const uint8_t *at = take(cursor, 4);
  return at ? wire_u32(at) : 0;
}

static uint16_t take_u16(struct cursor *cursor)
{
  const uint8_t *at = take(cursor, 2);
  return at ? wire_u16(at) : 0;
}

static uint64_t take_u64(struct cursor *cursor)
{
  const uint8_t *at = take(cursor, 8);
  return at ? wire_u64(at) : 0;
}

static char *take_string(struct cursor *cursor, struct strings *strings)
{
  uint32_t length = take_u32(cursor);
  if (length > START_STRING_MOST) {
    cursor->why = "START has too long a string";
    return NULL;
  }
  const uint8_t *at = take(cursor, length);
  if (!at) return NULL;
  if (memchr(at, 0, length)) {
    cursor->why = "START has a NUL in a string";
    return NULL;
  }
  char *copy = strings->text;
  memcpy(copy, at, length);
  copy[length] = 0;
  strings->text += length + 1;
  return copy;
}

static char **take_list(struct cursor *cursor, struct strings *strings)
{
  uint32_t count = take_u32(cursor);
  if (count > START_STRINGS_MOST) cursor->why = "START has too many strings";
  if (cursor->why) return NULL;
  char **list = strings->list;
  for (uint32_t i = 0; i < count && !cursor->why; i++) list[i] = take_string(cursor, strings);
  if (cursor->why) return NULL;
  list[count] = NULL;
  strings->list += count + 1;
  return list;
}

static void take_rlimits(struct cursor *cursor, struct start *start)
{
  start->rlimit_count = take_u32(cursor);
  if (start->rlimit_count > START_RLIMITS_MOST) cursor->why = "START has too many rlimits";
  for (uint32_t i = 0; i < start->rlimit_count && !cursor->why; i++) {
    start->rlimits[i].resource = take_u32(cursor);
    start->rlimits[i].soft = take_u64(cursor);
    start->rlimits[i].hard = take_u64(cursor);
  }
}

static void take_flags(struct cursor *cursor, struct start *start)
{
  uint32_t flags = take_u32(cursor);
  start->stdin_fed = flags & STDIN_FED;
  start->gate = flags & GATE;
  start->terminal = flags & TERMINAL;
  start->worker = flags & WORKER;
  start->layers = flags & LAYERS;
  start->later = flags & LATER;
  start->aside = flags & ASIDE;
  start->liner = flags & LINER;
  start->forked = flags & FORKED;
  start->zygote = flags & ZYGOTE;
  const bool special = start->terminal || start->worker || start->aside;
  if (flags > ALL_FLAGS) cursor->why = "START has unknown flags";
  else if ((start->terminal || start->worker) && !start->stdin_fed) cursor->why = "START has a terminal or a worker without input";
  else if (start->aside && !start->stdin_fed) cursor->why = "START has an aside without input";
  else if (start->aside && (start->terminal || start->worker || start->later)) cursor->why = "START has an aside where there can be none";
  else if (start->terminal && start->worker) cursor->why = "START has a worker at a terminal";
  else if (start->layers && !start->worker) cursor->why = "START has layers without a worker";
  else if ((start->liner || start->zygote) && special) cursor->why = "START has a liner or a zygote that is something else";
  else if (start->forked && !start->liner) cursor->why = "START has a fork of the zygote without a liner";
  else if (start->zygote && (start->liner || start->later || start->stdin_fed)) cursor->why = "START has a zygote that is more than that";
  else if (start->later && (!start->gate || start->terminal || start->worker)) cursor->why = "START leaves for later what it cannot";
}

static bool is_side(uint16_t length)
{
  return length >= 1 && length <= START_SIDE_MOST;
}

static bool is_component(const char *name)
{
  return strlen(name) <= START_GROUP_MOST && !strchr(name, '/') && strcmp(name, ".") && strcmp(name, "..");
}

static const char *fault_in_told(const struct start *start)
{
  if (!start->argv[0]) return "START has no argument";
  for (char **entry = start->envp; *entry; entry++) {
    const char *equals = strchr(*entry, '=');
    if (!equals || equals == *entry) return "START has an environment entry without a name";
  }
  return NULL;
}

static const char *fault_in(const struct start *start)
{
  /* setresuid(-1) means "as it is", which would leave the warden's own id to the program. */
  if (start->uid == UINT32_MAX || start->gid == UINT32_MAX) return "START has the id -1";
  if (start->worker && start->argv[0] && start->argv[1]) return "START has a worker with arguments";
  if ((start->liner || start->zygote) && start->capabilities) return "START has capabilities where there can be none";
  if (start->liner && !(start->disk_bytes && start->disk_inodes)) return "START has a liner without a disk";
  if (start->terminal && !(is_side(start->rows) && is_side(start->columns))) return "START has a terminal of an impossible size";
  if (!is_component(start->group)) return "START has a group that is no name of a folder";
  if (!start->later) return fault_in_told(start);
  return *start->cwd || *start->argv || *start->envp ? "START tells what it leaves for later" : NULL;
}

static struct strings room_for(const struct start *start)
{
  struct strings strings = { .list = start->memory };
  strings.text = (char *)(strings.list + 2 * (START_STRINGS_MOST + 1));
  return strings;
}

static void take_told(struct cursor *cursor, struct strings *strings, struct start *start)
{
  start->cwd = take_string(cursor, strings);
  start->argv = take_list(cursor, strings);
  start->envp = take_list(cursor, strings);
}

static void take_rest(struct cursor *cursor, struct start *start)
{
  if (start->terminal) {
    start->rows = take_u16(cursor);
    start->columns = take_u16(cursor);
  }
  if (start->liner) {
    start->disk_bytes = take_u64(cursor);
    start->disk_inodes = take_u64(cursor);
  }
  if (start->zygote) {
    start->library_length = take_u32(cursor);
    start->library = take(cursor, start->library_length);
  }
}

static const char *take_all(struct cursor *cursor, struct start *start)
{
  struct strings strings = room_for(start);
  take_flags(cursor, start);
  start->uid = take_u32(cursor);
  start->gid = take_u32(cursor);
  start->capabilities = take_u64(cursor);
  take_rlimits(cursor, start);
  take_told(cursor, &strings, start);
  start->group = take_string(cursor, &strings);
  take_rest(cursor, start);
  if (cursor->why) return cursor->why;
  if (cursor->left) return "START has bytes after its end";
  return fault_in(start);
}

/* Each string costs at least the four bytes of its length on the wire and one NUL here, so the payload's size bounds the copies. */
static bool make_room(struct start *start, size_t length)
{
  start->memory = malloc(2 * (START_STRINGS_MOST + 1) * sizeof(char *) + length + 1);
  return start->memory;
}

const char *start_parse(const uint8_t *bytes, size_t length, struct start *start)
{
  *start = (struct start){ .raw = bytes, .raw_length = length };
  if (!make_room(start, length)) return "no memory for START";
  struct cursor cursor = { .at = bytes, .left = length };
  const char *why = take_all(&cursor, start);
  if (why) start_free(start);
  return why;
}

const char *start_tell(const uint8_t *bytes, size_t length, struct start *start)
{
  free(start->memory);
  if (!make_room(start, length)) return "no memory for RELEASE";
  struct cursor cursor = { .at = bytes, .left = length };
  struct strings strings = room_for(start);
  take_told(&cursor, &strings, start);
  if (cursor.why) return cursor.why;
  return cursor.left ? "RELEASE has bytes after its end" : fault_in_told(start);
}

void start_wipe(struct start *start)
{
  if (start->memory) explicit_bzero(room_for(start).text, start->raw_length + 1);
  start_free(start);
}

void start_free(struct start *start)
{
  free(start->memory);
  *start = (struct start){ 0 };
}
