/*
 * fuzz-warden SEED SECONDS: feeds mutated frames, START and RULES payloads and stat lines to the warden's parsers, built with AddressSanitizer and
 * UBSan, and checks what they promise. A child does it, with its current input in shared memory, so that the input that killed it can be shown.
 * fuzz-warden --reproduce KIND HEX: that one input again, without a child.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../frame.h"
#include "../process-table.h"
#include "../rules.h"
#include "../start.h"
#include "../used-ids.h"
#include "files.h"
#include "inputs.h"

struct stage {
  uint32_t kind;
  struct input input;
  uint64_t done, whole, malformed;
};

#define CHECK(condition) \
  do { \
    if (!(condition)) { \
      fprintf(stderr, "promise broken: %s\n", #condition); \
      abort(); \
    } \
  } while (0)

static void try_start(const uint8_t *bytes, size_t length, struct stage *stage)
{
  struct start start;
  const char *why = start_parse(bytes, length, &start);
  stage->whole += !why;
  stage->malformed += !!why;
  if (why) {
    CHECK(strlen(why) <= FRAME_TEXT_MOST && !start.memory);
    return;
  }
  CHECK(start.argv[0] && start.cwd && start.uid != UINT32_MAX && start.gid != UINT32_MAX && start.rlimit_count <= START_RLIMITS_MOST);
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

static void try_rules(const uint8_t *bytes, size_t length, struct stage *stage)
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
  stage->whole += !reader.why;
  stage->malformed += !!reader.why;
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

static void try_frames(const uint8_t *bytes, size_t length, struct stage *stage)
{
  while (length) {
    struct frame frame = { 0 };
    enum frame_result result = frame_parse(bytes, length, &frame);
    stage->whole += result == FRAME_WHOLE;
    stage->malformed += result == FRAME_MALFORMED;
    if (result == FRAME_PARTIAL) {
      CHECK(frame_needs(bytes, length) > length || length < FRAME_HEADER);
      return;
    }
    if (result == FRAME_WHOLE) check_prefixes(bytes, &frame, result);
    if (result == FRAME_MALFORMED) CHECK(frame.why && strlen(frame.why) <= FRAME_TEXT_MOST);
    if (result == FRAME_MALFORMED) return;
    CHECK(frame.length <= length - FRAME_HEADER && frame.payload == bytes + FRAME_HEADER);
    if (frame.type == FRAME_START) try_start(frame.payload, frame.length, stage);
    if (frame.type == FRAME_RULES) try_rules(frame.payload, frame.length, stage);
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

static void try_input(struct stage *stage)
{
  /* A copy of exactly its size, so that one byte too far is seen. */
  size_t length = stage->input.length;
  uint8_t *bytes = malloc(length ? length : 1);
  memcpy(bytes, stage->input.bytes, length);
  struct process process;
  if (stage->kind == INPUT_FRAMES) try_frames(bytes, length, stage);
  if (stage->kind == INPUT_START) try_start(bytes, length, stage);
  if (stage->kind == INPUT_RULES) try_rules(bytes, length, stage);
  if (stage->kind == INPUT_STAT && process_parse((const char *)bytes, length, &process)) CHECK(process.pid > 0);
  if (stage->kind == INPUT_STAT) try_ids(bytes, length);
  if (stage->kind >= INPUT_FILES_REQUEST) {
    int whole = stage->kind == INPUT_FILES_REQUEST ? files_try_request(bytes, length)
                : stage->kind == INPUT_FILES_ARCHIVE ? files_try_archive(bytes, length)
                                                     : files_try_stream(bytes, length);
    stage->whole += whole;
    stage->malformed += !whole;
  }
  free(bytes);
  stage->done++;
}

static void fuzz(struct stage *stage, uint64_t seed, long seconds)
{
  struct chance chance = { seed };
  time_t end = time(NULL) + seconds;
  while (time(NULL) < end)
    for (int i = 0; i < 1000; i++) {
      stage->kind = chance_below(&chance, INPUT_KINDS);
      input_make(&stage->input, &chance, stage->kind);
      try_input(stage);
    }
}

static int reproduce(struct stage *stage, const char *kind, const char *hex)
{
  stage->kind = (uint32_t)atoi(kind);
  for (unsigned byte; stage->input.length < INPUT_MOST && sscanf(hex, "%2x", &byte) == 1; hex += 2) stage->input.bytes[stage->input.length++] = (uint8_t)byte;
  try_input(stage);
  printf("nothing found\n");
  return 0;
}

static int report(const struct stage *stage, int status)
{
  printf("fuzz: %llu inputs, %llu whole frames, STARTs and RULES, %llu malformed\n", (unsigned long long)stage->done, (unsigned long long)stage->whole, (unsigned long long)stage->malformed);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return 0;
  printf("fuzz: FOUND with this input:\n--reproduce %u ", stage->kind);
  for (size_t i = 0; i < stage->input.length; i++) printf("%02x", stage->input.bytes[i]);
  printf("\n");
  return 1;
}

int main(int argc, char **argv)
{
  struct stage *stage = mmap(NULL, sizeof *stage, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (stage == MAP_FAILED) return 2;
  if (argc == 4 && !strcmp(argv[1], "--reproduce")) return reproduce(stage, argv[2], argv[3]);
  if (argc != 3) return 2;
  uint64_t seed = strtoull(argv[1], NULL, 10);
  printf("fuzz: seed %llu, %s s\n", (unsigned long long)seed, argv[2]);
  fflush(stdout);
  pid_t child = fork();
  if (child == 0) {
    fuzz(stage, seed, atol(argv[2]));
    _exit(0);
  }
  int status;
  if (child < 0 || waitpid(child, &status, 0) < 0) return 2;
  return report(stage, status);
}
