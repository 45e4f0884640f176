#include "tar-write.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LONG_MOST UINT64_C(077777777777)
enum { ID_MOST = 07777777, NANOSECONDS = 1000000000 };

struct records {
  char *text;
  size_t used, room;
  bool lost; /* there was no memory */
};

static size_t digits_of(size_t number)
{
  size_t digits = 1;
  for (; number >= 10; number /= 10) digits++;
  return digits;
}

/* `LENGTH KEY=VALUE\n`, where the length counts itself. */
static void add_record(struct records *records, const char *key, const char *value, size_t length)
{
  size_t rest = 1 + strlen(key) + 1 + length + 1, total = rest + digits_of(rest);
  total = rest + digits_of(total);
  if (records->used + total + 1 > records->room) {
    size_t room = 2 * records->room + total + 256;
    char *text = realloc(records->text, room);
    if (!text) {
      records->lost = true;
      return;
    }
    records->text = text;
    records->room = room;
  }
  char *at = records->text + records->used;
  at += sprintf(at, "%zu %s=", total, key);
  memcpy(at, value, length);
  at[length] = '\n';
  records->used += total;
}

static void add_number(struct records *records, const char *key, uint64_t value)
{
  char text[32];
  add_record(records, key, text, (size_t)snprintf(text, sizeof text, "%llu", (unsigned long long)value));
}

static void add_time(struct records *records, const struct timespec *time)
{
  char text[48];
  bool negative = time->tv_sec < 0;
  /* Times count nanoseconds upwards from the second; decimals of a negative number count away from zero. */
  long nanoseconds = negative && time->tv_nsec ? NANOSECONDS - time->tv_nsec : time->tv_nsec;
  unsigned long long seconds = negative ? (unsigned long long)-(time->tv_sec + (time->tv_nsec ? 1 : 0)) : (unsigned long long)time->tv_sec;
  add_record(records, "mtime", text, (size_t)snprintf(text, sizeof text, "%s%llu.%09ld", negative ? "-" : "", seconds, nanoseconds));
}

static bool is_utf8(const char *text, size_t length)
{
  for (size_t i = 0; i < length;) {
    uint8_t first = (uint8_t)text[i++];
    int more = first < 0x80 ? 0 : first >= 0xc2 && first < 0xe0 ? 1 : first >= 0xe0 && first < 0xf0 ? 2 : first >= 0xf0 && first < 0xf5 ? 3 : -1;
    if (more < 0 || length - i < (size_t)more) return false;
    for (; more; more--)
      if (((uint8_t)text[i++] & 0xc0) != 0x80) return false;
  }
  return true;
}

static void octal(uint8_t *field, size_t width, uint64_t value)
{
  for (size_t i = width - 1; i-- > 0; value >>= 3) field[i] = (uint8_t)('0' + (value & 7));
}

/* Into name and prefix, at a slash; false when it does not fit. */
static bool put_name(uint8_t *block, const char *name, size_t length)
{
  if (length <= TAR_NAME) {
    memcpy(block + TAR_AT_NAME, name, length);
    return true;
  }
  if (length > TAR_NAME + 1 + TAR_PREFIX) return false;
  for (size_t cut = length - TAR_NAME - 1; cut <= TAR_PREFIX && cut + 1 < length; cut++) {
    if (name[cut] != '/' || cut == 0) continue;
    memcpy(block + TAR_AT_PREFIX, name, cut);
    memcpy(block + TAR_AT_NAME, name + cut + 1, length - cut - 1);
    return true;
  }
  return false;
}

static void seal(uint8_t *block)
{
  memcpy(block + TAR_AT_MAGIC, "ustar\0" "00", TAR_MAGIC);
  octal(block + TAR_AT_SUM, TAR_SUM - 1, tar_checksum(block));
  block[TAR_AT_SUM + TAR_SUM - 1] = ' ';
}

/* Every field that fits into the block; the others into records. */
static void describe(uint8_t *block, const struct tar_entry *entry, struct records *records)
{
  if (!put_name(block, entry->name, entry->name_length)) {
    add_record(records, "path", entry->name, entry->name_length);
    memcpy(block + TAR_AT_NAME, entry->name, TAR_NAME);
  }
  if (entry->link_length > TAR_LINK_NAME) add_record(records, "linkpath", entry->link, entry->link_length);
  if (entry->link_length) memcpy(block + TAR_AT_LINK, entry->link, entry->link_length < TAR_LINK_NAME ? entry->link_length : TAR_LINK_NAME);
  if (records->used && (!is_utf8(entry->name, entry->name_length) || !is_utf8(entry->link, entry->link_length))) add_record(records, "hdrcharset", "BINARY", 6);
  if (entry->uid > ID_MOST) add_number(records, "uid", entry->uid);
  if (entry->gid > ID_MOST) add_number(records, "gid", entry->gid);
  if (entry->size > LONG_MOST) add_number(records, "size", entry->size);
  bool fits = entry->mtime.tv_sec >= 0 && (uint64_t)entry->mtime.tv_sec <= LONG_MOST;
  if (!fits || entry->mtime.tv_nsec) add_time(records, &entry->mtime);
  if (entry->mark) add_record(records, TAR_MARK_KEY, TAR_MARKS[entry->mark], strlen(TAR_MARKS[entry->mark]));
  octal(block + TAR_AT_MODE, TAR_ID, entry->mode);
  octal(block + TAR_AT_UID, TAR_ID, entry->uid > ID_MOST ? 0 : entry->uid);
  octal(block + TAR_AT_GID, TAR_ID, entry->gid > ID_MOST ? 0 : entry->gid);
  octal(block + TAR_AT_SIZE, TAR_LONG, entry->size > LONG_MOST ? 0 : entry->size);
  octal(block + TAR_AT_MTIME, TAR_LONG, fits ? (uint64_t)entry->mtime.tv_sec : 0);
  block[TAR_AT_TYPE] = (uint8_t)entry->type;
  seal(block);
}

static void put_records(const struct tar_sink *sink, const struct records *records)
{
  uint8_t block[TAR_BLOCK] = { 0 };
  strcpy((char *)block, "PaxHeaders/entry");
  octal(block + TAR_AT_MODE, TAR_ID, 0644);
  octal(block + TAR_AT_UID, TAR_ID, 0);
  octal(block + TAR_AT_GID, TAR_ID, 0);
  octal(block + TAR_AT_SIZE, TAR_LONG, records->used);
  octal(block + TAR_AT_MTIME, TAR_LONG, 0);
  block[TAR_AT_TYPE] = 'x';
  seal(block);
  sink->put(sink->into, block, sizeof block);
  sink->put(sink->into, records->text, records->used);
  tar_put_padding(sink, records->used);
}

bool tar_put_header(const struct tar_sink *sink, const struct tar_entry *entry)
{
  uint8_t block[TAR_BLOCK] = { 0 };
  struct records records = { 0 };
  describe(block, entry, &records);
  if (records.used && !records.lost) put_records(sink, &records);
  if (!records.lost) sink->put(sink->into, block, sizeof block);
  free(records.text);
  return !records.lost;
}

void tar_put_padding(const struct tar_sink *sink, uint64_t size)
{
  static const uint8_t zeros[TAR_BLOCK];
  size_t over = (size_t)(size % TAR_BLOCK);
  if (over) sink->put(sink->into, zeros, TAR_BLOCK - over);
}

void tar_put_end(const struct tar_sink *sink)
{
  static const uint8_t zeros[2 * TAR_BLOCK];
  sink->put(sink->into, zeros, sizeof zeros);
}
