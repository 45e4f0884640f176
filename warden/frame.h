/* The frames of PROTOCOL.md. Pure: bytes in, a view of them out; no I/O and no allocation. */
#ifndef GLOVEBOX_FRAME_H
#define GLOVEBOX_FRAME_H

#include <stddef.h>
#include <stdint.h>

enum {
  FRAME_HEADER = 12,
  FRAME_CHUNK = 262144,
  FRAME_WINDOW = 2097152,
  FRAME_SHARE_LEAST = 4096,
  FRAME_WINDOW_WIDE = 262144,
  FRAME_WINDOW_NARROW = 32768,
  FRAME_DATAGRAM_MOST = 4096,
  FRAME_START_MOST = 4 * 1024 * 1024,
  FRAME_FILTER_MOST = 32768,
  FRAME_RULES_MOST = 4 * 1024 * 1024,
  FRAME_TEXT_MOST = 256,
  FRAME_VERSION = 4,
};

enum frame_type {
  FRAME_HELLO = 0x01,
  FRAME_CONFIGURE = 0x02,
  FRAME_RULES = 0x03,
  FRAME_START = 0x10,
  FRAME_STDIN = 0x11,
  FRAME_SIGNAL = 0x12,
  FRAME_KILL = 0x13,
  FRAME_CREDIT = 0x14,
  FRAME_CLOSE = 0x15,
  FRAME_RELEASE = 0x16,
  FRAME_RESIZE = 0x17,
  FRAME_CONNECT = 0x18,
  FRAME_LISTEN = 0x19,
  FRAME_ANSWER = 0x1a,
  FRAME_GATED = 0x1f,
  FRAME_STARTED = 0x20,
  FRAME_FAILED = 0x21,
  FRAME_OUTPUT = 0x22,
  FRAME_EXITED = 0x23,
  FRAME_GONE = 0x24,
  FRAME_CONNECTED = 0x25,
  FRAME_CLOSED = 0x26,
  FRAME_ACCEPTED = 0x27,
  FRAME_QUERY = 0x28,
  FRAME_FATAL = 0x7f,
};

struct frame {
  uint32_t length;
  uint8_t type;
  uint8_t stream;
  uint32_t run;
  const uint8_t *payload;
  const char *why; /* set when the frame is malformed */
};

enum frame_result { FRAME_PARTIAL, FRAME_WHOLE, FRAME_MALFORMED };

/* Reads the engine's next frame. A malformed header is known as soon as it is complete, before any of its payload. */
enum frame_result frame_parse(const uint8_t *bytes, size_t length, struct frame *frame);

/* Bytes that must be buffered before the frame that begins here can be whole: at least a header. */
size_t frame_needs(const uint8_t *bytes, size_t length);

void frame_put_header(uint8_t *at, const struct frame *frame);

#endif
