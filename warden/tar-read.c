#include "tar-read.h"

#include <stdlib.h>
#include <string.h>

#include "tar-pax.h"

static bool pull_exactly(struct tar_reader *reader, uint8_t *into, size_t length)
{
  if (reader->pull(reader->from, into, length) == length) return true;
  reader->why = "ends early";
  return false;
}

ssize_t tar_content(struct tar_reader *reader, uint8_t *into, size_t length)
{
  if (length > reader->content_left) length = (size_t)reader->content_left;
  if (!length) return 0;
  size_t got = reader->pull(reader->from, into, length);
  reader->content_left -= got;
  if (got) return (ssize_t)got;
  reader->why = "ends early";
  return -1;
}

static bool pass_over(struct tar_reader *reader)
{
  uint8_t bytes[8 * TAR_BLOCK];
  ssize_t got;
  while ((got = tar_content(reader, bytes, sizeof bytes)) > 0) {}
  size_t padding = (size_t)reader->padding_left;
  reader->padding_left = 0;
  return got == 0 && pull_exactly(reader, bytes, padding);
}

/* Octal, or GNU's binary form for what octal cannot hold. */
static bool number_in(const uint8_t *field, size_t width, int64_t *value)
{
  if (field[0] & 0x80) {
    bool negative = field[0] & 0x40;
    uint64_t bits = negative ? UINT64_MAX : 0;
    for (size_t i = 0; i < width; i++) {
      uint8_t byte = i == 0 ? (uint8_t)(negative ? field[0] : field[0] & 0x7f) : field[i];
      if (width - i > 8 && byte != (negative ? 0xff : 0)) return false;
      bits = bits << 8 | byte;
    }
    *value = (int64_t)bits;
    return (*value < 0) == negative;
  }
  size_t at = 0;
  while (at < width && field[at] == ' ') at++;
  uint64_t sum = 0;
  for (; at < width && field[at] >= '0' && field[at] <= '7'; at++) sum = sum << 3 | (uint64_t)(field[at] - '0');
  *value = (int64_t)sum;
  return at == width || field[at] == 0 || field[at] == ' ';
}

static bool is_zero(const uint8_t *block)
{
  for (int i = 0; i < TAR_BLOCK; i++)
    if (block[i]) return false;
  return true;
}

static bool has_checksum(const uint8_t *block)
{
  int64_t said;
  /* Some old writers added the bytes up as signed. */
  int64_t high = 0;
  for (int i = 0; i < TAR_BLOCK; i++) high += i >= TAR_AT_SUM && i < TAR_AT_SUM + TAR_SUM ? 0 : block[i] >> 7;
  return number_in(block + TAR_AT_SUM, TAR_SUM, &said) && (said == tar_checksum(block) || said == (int64_t)tar_checksum(block) - 256 * high);
}

static const char *take_extension(struct tar_reader *reader, char type, uint64_t size)
{
  if (size > TAR_EXTENSION_MOST) return "an extension header that is too long";
  char *text = malloc(size + 1);
  if (!text) return "more names than there is memory for";
  reader->content_left = size;
  reader->padding_left = (TAR_BLOCK - size % TAR_BLOCK) % TAR_BLOCK;
  const char *why = NULL;
  bool whole = pull_exactly(reader, (uint8_t *)text, size);
  reader->content_left = 0;
  text[size] = 0;
  if (!whole || !pass_over(reader)) why = reader->why;
  else if (type == 'x') why = tar_pax(reader, text, size);
  else if (type == 'g') why = tar_pax_global(text, size);
  else if (!tar_text_set(type == 'L' ? &reader->long_name : &reader->long_link, text, strnlen(text, size))) why = "a wrong long name";
  free(text);
  return why;
}

static bool settle(struct tar_text *into, struct tar_text *said, const char *text, size_t length)
{
  if (!said->bytes) return tar_text_set(into, text, length);
  free(into->bytes);
  *into = *said;
  *said = (struct tar_text){ 0 };
  return true;
}

static bool take_names(struct tar_reader *reader, const uint8_t *block)
{
  char name[TAR_PREFIX + 1 + TAR_NAME + 1] = "";
  size_t length = 0;
  /* GNU's own format keeps other things where ustar has the prefix. */
  if (!memcmp(block + TAR_AT_MAGIC, "ustar\0", 6) && block[TAR_AT_PREFIX]) {
    length = strnlen((const char *)block + TAR_AT_PREFIX, TAR_PREFIX);
    memcpy(name, block + TAR_AT_PREFIX, length);
    name[length++] = '/';
  }
  size_t rest = strnlen((const char *)block + TAR_AT_NAME, TAR_NAME);
  memcpy(name + length, block + TAR_AT_NAME, rest);
  const char *link = (const char *)block + TAR_AT_LINK;
  return settle(&reader->name, &reader->long_name, name, length + rest) && settle(&reader->link, &reader->long_link, link, strnlen(link, TAR_LINK_NAME));
}

static char type_in(const uint8_t *block, const struct tar_text *name)
{
  char type = (char)block[TAR_AT_TYPE];
  if (type == 0 || type == '7') type = TAR_FILE;
  bool ends_in_slash = name->length && name->bytes[name->length - 1] == '/';
  return type == TAR_FILE && ends_in_slash ? TAR_FOLDER : type;
}

static const char *describe(struct tar_reader *reader, const uint8_t *block, struct tar_entry *entry)
{
  int64_t mode, uid, gid, size, seconds;
  if (!take_names(reader, block)) return "a wrong name";
  bool read = number_in(block + TAR_AT_MODE, TAR_ID, &mode) && number_in(block + TAR_AT_UID, TAR_ID, &uid) && number_in(block + TAR_AT_GID, TAR_ID, &gid);
  if (!read || !number_in(block + TAR_AT_SIZE, TAR_LONG, &size) || !number_in(block + TAR_AT_MTIME, TAR_LONG, &seconds)) return "a wrong number";
  if (reader->has_size) size = reader->size > INT64_MAX ? -1 : (int64_t)reader->size;
  *entry = (struct tar_entry){
    .type = type_in(block, &reader->name), .name = reader->name.bytes, .name_length = reader->name.length,
    .link = reader->link.bytes, .link_length = reader->link.length, .mode = (uint32_t)mode & 07777,
    .uid = reader->has_uid ? reader->uid : (uint64_t)uid, .gid = reader->has_gid ? reader->gid : (uint64_t)gid,
    .size = (uint64_t)size, .mtime = { .tv_sec = seconds }, .mark = reader->mark,
  };
  if (reader->has_mtime) entry->mtime = reader->mtime;
  if (size < 0 || size > INT64_MAX - TAR_BLOCK) return "a wrong size";
  if (entry->type == TAR_HARD_LINK) entry->size = 0;
  reader->content_left = entry->size;
  reader->padding_left = (TAR_BLOCK - entry->size % TAR_BLOCK) % TAR_BLOCK;
  if (strchr("01256", entry->type)) return NULL;
  reader->odd_type = entry->type;
  return "an entry of another type";
}

static bool is_extension(char type)
{
  return type == 'x' || type == 'g' || type == 'L' || type == 'K';
}

enum tar_result tar_next(struct tar_reader *reader, struct tar_entry *entry)
{
  uint8_t block[TAR_BLOCK];
  bool extended = false;
  int64_t size;
  if (!pass_over(reader)) return TAR_WRONG;
  reader->has_size = reader->has_mtime = reader->has_uid = reader->has_gid = false;
  reader->mark = TAR_NO_MARK;
  for (;;) {
    size_t got = reader->pull(reader->from, block, sizeof block);
    bool at_end = got == 0 || (got == sizeof block && is_zero(block));
    reader->why = at_end && !extended ? NULL : "ends early";
    if (at_end || got < sizeof block) return reader->why ? TAR_WRONG : TAR_END;
    reader->why = "is none";
    if (!has_checksum(block)) return TAR_WRONG;
    char type = (char)block[TAR_AT_TYPE];
    if (!is_extension(type)) {
      reader->why = describe(reader, block, entry);
      return reader->why ? TAR_WRONG : TAR_ENTRY;
    }
    extended = extended || type != 'g';
    reader->why = number_in(block + TAR_AT_SIZE, TAR_LONG, &size) && size >= 0 ? take_extension(reader, type, (uint64_t)size) : "a wrong size";
    if (reader->why) return TAR_WRONG;
  }
}

void tar_reader_free(struct tar_reader *reader)
{
  free(reader->name.bytes);
  free(reader->link.bytes);
  free(reader->long_name.bytes);
  free(reader->long_link.bytes);
}
