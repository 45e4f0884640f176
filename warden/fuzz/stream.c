#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../files-frames.h"
#include "../wire.h"
#include "files.h"

#define CHECK(condition) \
  do { \
    if (!(condition)) { \
      fprintf(stderr, "promise broken: %s\n", #condition); \
      abort(); \
    } \
  } while (0)

static void add_frame(struct input *input, uint8_t type, uint32_t length, uint32_t sent)
{
  uint8_t header[FILES_HEADER] = { [4] = type };
  if (INPUT_MOST - input->length < sizeof header + sent) return;
  wire_put_u32(header, length);
  memcpy(input->bytes + input->length, header, sizeof header);
  memset(input->bytes + input->length + sizeof header, 'c', sent);
  input->length += sizeof header + sent;
}

/* A request that content follows, then content; the last of it may be longer than what is sent. */
void files_stream_seed(struct input *input, struct chance *chance)
{
  for (uint32_t requests = 1 + chance_below(chance, 3); requests; requests--) {
    add_frame(input, FILES_WRITE, 3, 3);
    for (uint32_t pieces = chance_below(chance, 5); pieces; pieces--) {
      uint32_t length = chance_below(chance, chance_below(chance, 2) ? 20 : 3000);
      add_frame(input, FILES_CONTENT, length, length);
    }
    if (chance_below(chance, 8) == 0) add_frame(input, FILES_CONTENT, chance_below(chance, 2) ? FILES_CONTENT_MOST : FILES_PAYLOAD_MOST, chance_below(chance, 2000));
    else add_frame(input, FILES_END, 0, 0);
  }
}

/* What of the content that begins at `at` there is, up to its end or that of the bytes; as FILES.md has it. */
static size_t content_in(const uint8_t *bytes, size_t length, size_t *at, uint64_t *sum)
{
  size_t total = 0;
  while (length - *at >= FILES_HEADER && !request_header_fault(bytes + *at) && bytes[*at + 4] == FILES_CONTENT) {
    size_t said = wire_u32(bytes + *at), here = length - *at - FILES_HEADER;
    size_t part = said < here ? said : here;
    for (size_t i = 0; i < part; i++) *sum = *sum * 31 + bytes[*at + FILES_HEADER + i];
    total += part;
    *at += FILES_HEADER + part;
    if (part < said) return total;
  }
  return total;
}

/* By moving where it may be moved and by pieces where not; or, by chance of the bytes, only by pieces. */
static size_t take_all(struct files *files, const int duct[2], bool may_move, uint64_t *sum)
{
  size_t total = 0;
  uint8_t moved[INPUT_MOST];
  for (size_t left; (left = files_content_left(files));) {
    struct frame_in piece = { .payload = moved };
    if (may_move && files_content_is_bulk(files)) {
      ssize_t got = files_move_content(files, duct[1]);
      CHECK(got >= 0 && (size_t)got <= left && (got > 0 || files->over));
      piece.length = (size_t)got;
      CHECK(!got || read(duct[0], moved, sizeof moved) == got);
    } else if (!files_take_content(files, &piece)) break;
    CHECK(piece.length <= left && files->content == left - piece.length);
    for (size_t i = 0; i < piece.length; i++) *sum = *sum * 31 + piece.payload[i];
    total += piece.length;
  }
  return total;
}

int files_try_stream(const uint8_t *bytes, size_t length)
{
  int input[2], duct[2], whole = 0;
  CHECK(pipe(input) == 0 && pipe(duct) == 0 && write(input[1], bytes, length) == (ssize_t)length);
  close(input[1]);
  struct files files = { .input = input[0], .output = -1 };
  struct frame_in frame;
  CHECK(files_open(&files));
  for (size_t at = 0; files_take(&files, &frame);) {
    CHECK(frame.length <= FILES_PAYLOAD_MOST && frame.length + FILES_HEADER <= length - at && !memcmp(frame.payload, bytes + at + FILES_HEADER, frame.length));
    at += FILES_HEADER + frame.length;
    if (frame.type != FILES_WRITE) continue;
    uint64_t expected_sum = 0, sum = 0;
    size_t expected = content_in(bytes, length, &at, &expected_sum);
    CHECK(take_all(&files, duct, length % 2, &sum) == expected && sum == expected_sum);
    at += FILES_HEADER; /* END, or else it is over */
    whole += !files.over;
  }
  CHECK(files.over && (!files.fault || strlen(files.fault) < 100));
  files_close(&files);
  close(input[0]);
  close(duct[0]);
  close(duct[1]);
  return whole > 0;
}
