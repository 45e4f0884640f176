#include "frame.h"

#include "doors.h"
#include "start.h"
#include "wire.h"

struct rule {
  uint8_t type;
  uint8_t first_stream, last_stream;
  uint8_t needs_run;
  uint32_t least, most, unit;
};

static const struct rule RULES[] = {
  { FRAME_CONFIGURE, 0, 0, 0, 0, FRAME_FILTER_MOST, 8 },
  { FRAME_RULES, 0, 0, 0, 4, FRAME_RULES_MOST, 1 },
  { FRAME_START, 0, 0, 1, 1, FRAME_START_MOST, 1 },
  { FRAME_STDIN, 0, 0, 1, 0, FRAME_CHUNK, 1 },
  { FRAME_SIGNAL, 0, 0, 1, 4, 4, 1 },
  { FRAME_KILL, 0, 0, 1, 0, 0, 1 },
  { FRAME_CREDIT, 1, 3, 1, 4, 4, 1 },
  { FRAME_CLOSE, 0, 0, 0, 0, 0, 1 },
  { FRAME_RELEASE, 0, 0, 1, 0, START_TOLD_MOST, 1 },
  { FRAME_RESIZE, 0, 0, 1, 4, 4, 1 },
  { FRAME_CONNECT, 0, 0, 1, 2, 2, 1 },
  { FRAME_LISTEN, 0, 0, 0, 0, 2 * DOORS_PORTS_MOST, 2 },
  { FRAME_ANSWER, 0, 0, 1, 0, FRAME_DATAGRAM_MOST, 1 },
};

static const struct rule *rule_for(uint8_t type)
{
  for (size_t i = 0; i < sizeof RULES / sizeof *RULES; i++)
    if (RULES[i].type == type) return &RULES[i];
  return NULL;
}

static const char *fault_in_header(const uint8_t *bytes, const struct frame *frame)
{
  const struct rule *rule = rule_for(frame->type);
  if (!rule) return "unknown frame type";
  if (bytes[6] || bytes[7]) return "reserved field is not zero";
  if (frame->length < rule->least || frame->length > rule->most || frame->length % rule->unit) return "wrong frame length";
  if (frame->stream < rule->first_stream || frame->stream > rule->last_stream) return "wrong stream";
  if (!frame->run != !rule->needs_run) return "wrong run id";
  return NULL;
}

static int is_between(uint32_t number, uint32_t most)
{
  return number >= 1 && number <= most;
}

static const char *fault_in_payload(const struct frame *frame)
{
  const uint8_t *at = frame->payload;
  if (frame->type == FRAME_SIGNAL && !is_between(wire_u32(at), 64)) return "wrong signal number";
  if (frame->type == FRAME_RESIZE && !(is_between(wire_u16(at), START_SIDE_MOST) && is_between(wire_u16(at + 2), START_SIDE_MOST)))
    return "wrong size of a terminal";
  if (frame->type == FRAME_CONNECT && !wire_u16(at)) return "wrong port";
  for (uint32_t i = 0; frame->type == FRAME_LISTEN && i < frame->length; i += 2)
    if (!wire_u16(at + i)) return "wrong port";
  return NULL;
}

enum frame_result frame_parse(const uint8_t *bytes, size_t length, struct frame *frame)
{
  if (length < FRAME_HEADER) return FRAME_PARTIAL;
  *frame = (struct frame){ .length = wire_u32(bytes), .type = bytes[4], .stream = bytes[5], .run = wire_u32(bytes + 8), .payload = bytes + FRAME_HEADER };
  frame->why = fault_in_header(bytes, frame);
  if (frame->why) return FRAME_MALFORMED;
  if (length - FRAME_HEADER < frame->length) return FRAME_PARTIAL;
  frame->why = fault_in_payload(frame);
  return frame->why ? FRAME_MALFORMED : FRAME_WHOLE;
}

size_t frame_needs(const uint8_t *bytes, size_t length)
{
  struct frame frame;
  if (length < FRAME_HEADER || frame_parse(bytes, length, &frame) == FRAME_MALFORMED) return FRAME_HEADER;
  return FRAME_HEADER + (size_t)frame.length;
}

void frame_put_header(uint8_t *at, const struct frame *frame)
{
  wire_put_u32(at, frame->length);
  at[4] = frame->type;
  at[5] = frame->stream;
  at[6] = at[7] = 0;
  wire_put_u32(at + 8, frame->run);
}
