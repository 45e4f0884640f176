#include "inputs.h"

#include <stdio.h>
#include <string.h>

#include "../frame.h"
#include "../wire.h"
#include "files.h"
#include "lines.h"

static uint64_t chance_next(struct chance *chance)
{
  chance->state += UINT64_C(0x9e3779b97f4a7c15);
  uint64_t mixed = chance->state;
  mixed = (mixed ^ mixed >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
  mixed = (mixed ^ mixed >> 27) * UINT64_C(0x94d049bb133111eb);
  return mixed ^ mixed >> 31;
}

uint32_t chance_below(struct chance *chance, uint32_t bound)
{
  return (uint32_t)(chance_next(chance) % bound);
}

static void add(struct input *input, const void *bytes, size_t length)
{
  if (length > INPUT_MOST - input->length) length = INPUT_MOST - input->length;
  memcpy(input->bytes + input->length, bytes, length);
  input->length += length;
}

static void add_u32(struct input *input, uint32_t value)
{
  uint8_t bytes[4];
  wire_put_u32(bytes, value);
  add(input, bytes, sizeof bytes);
}

static void add_string(struct input *input, const char *text)
{
  add_u32(input, (uint32_t)strlen(text));
  add(input, text, strlen(text));
}

static void add_size(struct input *input, struct chance *chance)
{
  uint32_t most = chance_below(chance, 10) ? 4096 : 65535;
  add_u32(input, 1 + chance_below(chance, most) + ((1 + chance_below(chance, most)) << 16));
}

static void add_start(struct input *input, struct chance *chance)
{
  static const char *const groups[] = { "", "run-1", "..", "a/b", ".", "..." };
  static const char *const words[] = { "sh", "-c", "exit 7", "", "a b", "PATH=/usr/bin", "A=", "=x", "/workspace" };
  /* Mostly those that go together. */
  static const uint32_t kinds[] = { 0, 1, 2, 3, 5, 7, 9, 11, 25, 27, 65, 67 };
  uint32_t flags = chance_below(chance, 10) ? kinds[chance_below(chance, 12)] : chance_below(chance, 140);
  add_u32(input, flags);
  add_u32(input, 1000);
  add_u32(input, 1000);
  add(input, "\0\0\0\0\0\0\0\0", 8);
  uint32_t rlimits = chance_below(chance, 4);
  add_u32(input, rlimits);
  for (uint32_t i = 0; i < rlimits; i++) add(input, "\7\0\0\0\0\1\0\0\0\0\0\0\0\1\0\0\0\0\0\0", 20);
  add_string(input, "/workspace");
  for (int list = 0; list < 2; list++) {
    uint32_t count = chance_below(chance, 6) + (list == 0);
    if (list == 0 && flags & 8 && chance_below(chance, 10)) count = 1;
    add_u32(input, count);
    for (uint32_t i = 0; i < count; i++) add_string(input, list ? words[5 + chance_below(chance, 2)] : words[chance_below(chance, 9)]);
  }
  add_string(input, groups[chance_below(chance, 10) ? chance_below(chance, 2) : chance_below(chance, 6)]);
  if (flags & 4) add_size(input, chance);
}

static void add_rules(struct input *input, struct chance *chance)
{
  static const char *const paths[] = { "/", "/usr/bin/env", "/nowhere", "relative", "", "/a\nb" };
  uint32_t count = chance_below(chance, 6);
  add_u32(input, count);
  for (uint32_t i = 0; i < count; i++) {
    add_u32(input, chance_below(chance, 10) ? 1 + chance_below(chance, 7) : chance_below(chance, 16));
    add_string(input, paths[chance_below(chance, 10) ? chance_below(chance, 3) : chance_below(chance, 6)]);
  }
}

static void add_frame(struct input *input, struct chance *chance)
{
  static const uint8_t types[] = { FRAME_CONFIGURE, FRAME_RULES, FRAME_START, FRAME_STDIN, FRAME_SIGNAL, FRAME_KILL, FRAME_CREDIT, FRAME_CLOSE, FRAME_RELEASE, FRAME_RESIZE, FRAME_CONNECT, FRAME_LISTEN, FRAME_ANSWER };
  struct input payload;
  struct frame frame = { .type = types[chance_below(chance, sizeof types)] };
  payload.length = 0;
  if (frame.type == FRAME_START) add_start(&payload, chance);
  if (frame.type == FRAME_RULES) add_rules(&payload, chance);
  if (frame.type == FRAME_STDIN) add(&payload, "some input", chance_below(chance, 11));
  if (frame.type == FRAME_SIGNAL || frame.type == FRAME_CREDIT) add_u32(&payload, 1 + chance_below(chance, 64));
  if (frame.type == FRAME_RESIZE) add_size(&payload, chance);
  if (frame.type == FRAME_CONNECT) add(&payload, "\x90\x1f\0", 2 + chance_below(chance, 2));
  if (frame.type == FRAME_LISTEN) add(&payload, "\x50\0\xbb\1\0\0", 2 * chance_below(chance, 4));
  if (frame.type == FRAME_ANSWER) add(&payload, "an answer", chance_below(chance, 10));
  if (frame.type == FRAME_CONFIGURE) add(&payload, "\6\0\0\0\0\0\xff\x7f", 8);
  frame.stream = frame.type == FRAME_CREDIT ? 1 + (uint8_t)chance_below(chance, 3) : 0;
  frame.run = frame.type == FRAME_CONFIGURE || frame.type == FRAME_RULES || frame.type == FRAME_LISTEN || frame.type == FRAME_CLOSE ? 0 : 1 + chance_below(chance, 4);
  frame.length = (uint32_t)payload.length;
  uint8_t header[FRAME_HEADER];
  frame_put_header(header, &frame);
  add(input, header, sizeof header);
  add(input, payload.bytes, payload.length);
}

static void add_stat(struct input *input, struct chance *chance)
{
  static const char *const names[] = { "sh", "a) Z 1", "x\n(y)", ")", "" };
  char line[400];
  int length = snprintf(line, sizeof line, "%u (%s) %c %u 1 1 0 -1 4194304 90 0 0 0 1 2 3 4 20 0 %u 0 %u 2400000 200 18446744073709551615 0 0\n",
                        chance_below(chance, 4000000), names[chance_below(chance, 5)], "RSDZTX"[chance_below(chance, 6)], chance_below(chance, 4000000),
                        1 + chance_below(chance, 3), chance_below(chance, 1000000));
  add(input, line, (size_t)length);
}

static void add_told(struct input *input, struct chance *chance)
{
  add_string(input, "/workspace");
  for (int list = 0; list < 2; list++) {
    uint32_t count = 1 + chance_below(chance, 4);
    add_u32(input, count);
    for (uint32_t i = 0; i < count; i++) add_string(input, list ? "A=b" : "word");
  }
}

static void mutate(struct input *input, struct chance *chance)
{
  static const uint32_t edges[] = { 0, 1, 0x7f, 0xff, 0x100, 0xffff, 0x10000, 0x10001, 0x1ffff, 0x20000, 0x400000, 0x400001, 0x7fffffff, 0x80000000, 0xfffffffc, 0xffffffff };
  if (!input->length) return;
  size_t at = chance_below(chance, (uint32_t)input->length), rest = input->length - at;
  switch (chance_below(chance, 6)) {
  case 0: input->bytes[at] ^= (uint8_t)(1u << chance_below(chance, 8)); break;
  case 1: input->bytes[at] = (uint8_t)chance_below(chance, 256); break;
  case 2: input->length = at; break;
  case 3:
    if (rest >= 4) wire_put_u32(input->bytes + at, edges[chance_below(chance, sizeof edges / sizeof *edges)]);
    break;
  case 4: { /* cut some bytes out */
    size_t gone = 1 + chance_below(chance, (uint32_t)rest);
    memmove(input->bytes + at, input->bytes + at + gone, rest - gone);
    input->length -= gone;
    break;
  }
  case 5: { /* say some bytes twice */
    size_t again = 1 + chance_below(chance, rest < 64 ? (uint32_t)rest : 64);
    if (again > INPUT_MOST - input->length) break;
    memmove(input->bytes + at + again, input->bytes + at, rest);
    input->length += again;
    break;
  }
  }
}

void input_make(struct input *input, struct chance *chance, uint32_t kind)
{
  input->length = 0;
  if (kind == INPUT_FRAMES) for (uint32_t i = 1 + chance_below(chance, 5); i; i--) add_frame(input, chance);
  if (kind == INPUT_START) add_start(input, chance);
  if (kind == INPUT_RULES) add_rules(input, chance);
  if (kind == INPUT_STAT) add_stat(input, chance);
  if (kind == INPUT_TOLD) add_told(input, chance);
  if (kind >= INPUT_WARDEN_WORDS) lines_seed(input, chance, kind);
  if (kind == INPUT_FILES_REQUEST) files_request_seed(input, chance);
  if (kind == INPUT_FILES_ARCHIVE) files_archive_seed(input, chance);
  if (kind == INPUT_FILES_STREAM) files_stream_seed(input, chance);
  for (uint32_t i = chance_below(chance, 6); i; i--) mutate(input, chance);
}
