#include "tries.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../frame.h"
#include "../process-table.h"
#include "../rules.h"
#include "../start.h"
#include "../used-ids.h"
#include "files.h"

#define CHECK(condition) \
  do { \
    if (!(condition)) { \
      fprintf(stderr, "promise broken: %s\n", #condition); \
      abort(); \
    } \
  } while (0)

static void try_start(const uint8_t *bytes, size_t length, struct counts *counts)
{
  struct start start;
  const char *why = start_parse(bytes, length, &start);
  counts->whole += !why;
  counts->malformed += !!why;
  if (why) {
    CHECK(strlen(why) <= FRAME_TEXT_MOST && !start.memory);
    return;
  }
  /* One that is told later what to become has neither. */
  CHECK(start.later || (start.argv[0] && start.cwd));
  CHECK(start.uid != UINT32_MAX && start.gid != UINT32_MAX && start.rlimit_count <= START_RLIMITS_MOST);
  CHECK(strlen(start.group) <= START_GROUP_MOST && !strchr(start.group, '/') && strcmp(start.group, ".") && strcmp(start.group, ".."));
  CHECK(start.stdin_fed || !(start.terminal || start.worker));
  CHECK(!start.worker || (!start.terminal && !start.argv[1]));
  CHECK(start.worker || !start.layers);
  CHECK(start.terminal ? start.rows >= 1 && start.rows <= START_SIDE_MOST && start.columns >= 1 && start.columns <= START_SIDE_MOST : !start.rows && !start.columns);
  size_t text = strlen(start.cwd) + strlen(start.group);
  for (char **each = start.argv; *each; each++) text += strlen(*each);
  for (char **each = start.envp; *each; each++) {
    CHECK(strchr(*each, '=') > *each);
    text += strlen(*each);
  }
  CHECK(text < length);
  start_free(&start);
}

static void try_rules(const uint8_t *bytes, size_t length, struct counts *counts)
{
  struct rules_reader reader = rules_read(bytes, length);
  struct file_rule rule;
  uint32_t count = 0;
  for (; rules_next(&reader, &rule); count++) {
    CHECK(rule.access >= 1 && rule.access <= 7 && rule.length >= 1 && rule.length <= RULES_PATH_MOST);
    CHECK(rule.path >= bytes && rule.path + rule.length <= bytes + length && rule.path[0] == '/' && !memchr(rule.path, 0, rule.length));
  }
  CHECK(!rules_next(&reader, &rule));
  CHECK(reader.why ? strlen(reader.why) <= FRAME_TEXT_MOST : !reader.left && length >= 4);
  CHECK(reader.why || count == (bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 | (uint32_t)bytes[3] << 24));
  counts->whole += !reader.why;
  counts->malformed += !!reader.why;
}

/* What is said of a frame must not depend on how much of what follows has arrived, and never change once it is said. */
static void check_prefixes(const uint8_t *bytes, const struct frame *frame, enum frame_result result)
{
  size_t whole = FRAME_HEADER + (result == FRAME_WHOLE ? frame->length : 0);
  for (size_t length = 0; length < whole; length = length < FRAME_HEADER ? length + 1 : whole) {
    uint8_t *part = malloc(length ? length : 1);
    struct frame other = { 0 };
    memcpy(part, bytes, length);
    CHECK(frame_parse(part, length, &other) == FRAME_PARTIAL);
    CHECK(frame_needs(part, length) >= FRAME_HEADER && frame_needs(part, length) <= FRAME_HEADER + FRAME_START_MOST);
    free(part);
  }
}

static void try_frames(const uint8_t *bytes, size_t length, struct counts *counts)
{
  while (length) {
    struct frame frame = { 0 };
    enum frame_result result = frame_parse(bytes, length, &frame);
    counts->whole += result == FRAME_WHOLE;
    counts->malformed += result == FRAME_MALFORMED;
    if (result == FRAME_PARTIAL) {
      CHECK(frame_needs(bytes, length) > length || length < FRAME_HEADER);
      return;
    }
    if (result == FRAME_WHOLE) check_prefixes(bytes, &frame, result);
    if (result == FRAME_MALFORMED) CHECK(frame.why && strlen(frame.why) <= FRAME_TEXT_MOST);
    if (result == FRAME_MALFORMED) return;
    CHECK(frame.length <= length - FRAME_HEADER && frame.payload == bytes + FRAME_HEADER);
    if (frame.type == FRAME_START) try_start(frame.payload, frame.length, counts);
    if (frame.type == FRAME_RULES) try_rules(frame.payload, frame.length, counts);
    bytes += FRAME_HEADER + frame.length;
    length -= FRAME_HEADER + frame.length;
  }
}

static void try_ids(const uint8_t *bytes, size_t length)
{
  struct used_ids ids = { 0 };
  bool seen[256] = { false };
  for (size_t i = 0; i < length && i < 512; i++) {
    CHECK(used_ids_has(&ids, UINT32_MAX - bytes[i]) == seen[bytes[i]]);
    CHECK(used_ids_add(&ids, UINT32_MAX - bytes[i]));
    seen[bytes[i]] = true;
  }
  for (uint32_t id = 0; id < 256; id++) CHECK(used_ids_has(&ids, UINT32_MAX - id) == seen[id]);
  for (size_t i = 1; i < ids.count; i++) CHECK(ids.ranges[i - 1].last + 1 < ids.ranges[i].first);
  free(ids.ranges);
}

/* What comes with RELEASE. */
static void try_told(const uint8_t *bytes, size_t length, struct counts *counts)
{
  struct start start = { 0 };
  const char *why = length <= START_TOLD_MOST ? start_tell(bytes, length, &start) : "too long";
  counts->whole += !why;
  counts->malformed += !!why;
  /* Who asked frees it, whatever the answer. */
  if (why) start_free(&start);
  if (why) return;
  CHECK(start.argv[0] && start.cwd);
  for (char **each = start.envp; *each; each++) CHECK(strchr(*each, '=') > *each);
  start_wipe(&start);
}

static int try_counted(enum input_kind kind, const uint8_t *bytes, size_t length)
{
  switch (kind) {
  case INPUT_FILES_REQUEST: return files_try_request(bytes, length);
  case INPUT_FILES_ARCHIVE: return files_try_archive(bytes, length);
  case INPUT_FILES_STREAM: return files_try_stream(bytes, length);
  case INPUT_WARDEN_WORDS: return words_try_warden(bytes, length);
  case INPUT_LAUNCHER_WORDS: return words_try_launcher(bytes, length);
  case INPUT_LAUNCHER_REQUESTS: return serve_try(bytes, length);
  default: return filter_try(bytes, length);
  }
}

void try_input(enum input_kind kind, const uint8_t *bytes, size_t length, struct counts *counts)
{
  struct process process;
  if (kind == INPUT_FRAMES) try_frames(bytes, length, counts);
  if (kind == INPUT_START) try_start(bytes, length, counts);
  if (kind == INPUT_TOLD) try_told(bytes, length, counts);
  if (kind == INPUT_RULES) try_rules(bytes, length, counts);
  if (kind == INPUT_STAT && process_parse((const char *)bytes, length, &process)) CHECK(process.pid > 0);
  if (kind == INPUT_STAT) try_ids(bytes, length);
  if (kind < INPUT_FILES_REQUEST) return;
  int whole = try_counted(kind, bytes, length);
  counts->whole += whole;
  counts->malformed += !whole;
}
