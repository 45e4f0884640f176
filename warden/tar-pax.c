#include "tar-pax.h"

#include <stdlib.h>
#include <string.h>

enum { NANOSECOND_DIGITS = 9 };

struct record {
  const char *key, *value;
  size_t key_length, value_length;
};

bool tar_text_set(struct tar_text *into, const char *text, size_t length)
{
  if (length > TAR_NAME_MOST || memchr(text, 0, length)) return false;
  char *bytes = malloc(length + 1);
  if (!bytes) return false;
  memcpy(bytes, text, length);
  bytes[length] = 0;
  free(into->bytes);
  *into = (struct tar_text){ .bytes = bytes, .length = length };
  return true;
}

static size_t digits(const char *text, size_t length, uint64_t *value)
{
  size_t count = 0;
  *value = 0;
  for (; count < length && text[count] >= '0' && text[count] <= '9'; count++)
    if (__builtin_mul_overflow(*value, (uint64_t)10, value) || __builtin_add_overflow(*value, (uint64_t)(text[count] - '0'), value)) return 0;
  return count;
}

/* The record at the beginning of the text, and how long it is; 0 when there is none. */
static size_t next_record(const char *text, size_t length, struct record *record)
{
  uint64_t total;
  size_t width = digits(text, length, &total);
  if (!width || total > length || total < width + 4 || text[width] != ' ' || text[total - 1] != '\n') return 0;
  record->key = text + width + 1;
  const char *equals = memchr(record->key, '=', (size_t)total - width - 2);
  if (!equals || equals == record->key) return 0;
  record->key_length = (size_t)(equals - record->key);
  record->value = equals + 1;
  record->value_length = (size_t)(text + total - 1 - record->value);
  return (size_t)total;
}

static bool is_key(const struct record *record, const char *key)
{
  return record->key_length == strlen(key) && !memcmp(record->key, key, record->key_length);
}

static bool begins(const struct record *record, const char *start)
{
  return record->key_length >= strlen(start) && !memcmp(record->key, start, strlen(start));
}

static bool take_number(const struct record *record, uint64_t *value)
{
  return record->value_length && digits(record->value, record->value_length, value) == record->value_length;
}

static bool take_time(const struct record *record, struct timespec *time)
{
  const char *at = record->value, *end = at + record->value_length;
  bool negative = at < end && *at == '-';
  uint64_t seconds;
  at += negative;
  size_t width = digits(at, (size_t)(end - at), &seconds);
  if (!width || seconds > INT64_MAX / 2) return false;
  at += width;
  long nanoseconds = 0;
  if (at < end && *at++ != '.') return false;
  for (int i = 0; i < NANOSECOND_DIGITS; i++) nanoseconds = nanoseconds * 10 + (at < end && *at >= '0' && *at <= '9' ? *at++ - '0' : 0);
  while (at < end && *at >= '0' && *at <= '9') at++;
  if (at != end) return false;
  time->tv_sec = negative ? -(time_t)seconds - (nanoseconds ? 1 : 0) : (time_t)seconds;
  time->tv_nsec = negative && nanoseconds ? 1000000000 - nanoseconds : nanoseconds;
  return true;
}

static enum tar_mark mark_in(const struct record *record)
{
  for (enum tar_mark mark = TAR_REMOVED; mark <= TAR_HIDES; mark++)
    if (record->value_length == strlen(TAR_MARKS[mark]) && !memcmp(record->value, TAR_MARKS[mark], record->value_length)) return mark;
  return TAR_NO_MARK;
}

static const char *take(struct tar_reader *reader, const struct record *record)
{
  if (begins(record, "GNU.sparse.")) return "a sparse file";
  if (is_key(record, "path")) return tar_text_set(&reader->long_name, record->value, record->value_length) ? NULL : "a wrong path";
  if (is_key(record, "linkpath")) return tar_text_set(&reader->long_link, record->value, record->value_length) ? NULL : "a wrong linkpath";
  if (is_key(record, "size")) return (reader->has_size = take_number(record, &reader->size)) ? NULL : "a wrong size";
  if (is_key(record, "uid")) return (reader->has_uid = take_number(record, &reader->uid)) ? NULL : "a wrong uid";
  if (is_key(record, "gid")) return (reader->has_gid = take_number(record, &reader->gid)) ? NULL : "a wrong gid";
  if (is_key(record, "mtime")) return (reader->has_mtime = take_time(record, &reader->mtime)) ? NULL : "a wrong mtime";
  if (is_key(record, TAR_MARK_KEY)) reader->mark = mark_in(record);
  return NULL;
}

const char *tar_pax(struct tar_reader *reader, const char *text, size_t length)
{
  while (length) {
    struct record record;
    size_t used = next_record(text, length, &record);
    if (!used) return "a malformed extension header";
    const char *why = take(reader, &record);
    if (why) return why;
    text += used;
    length -= used;
  }
  return NULL;
}

const char *tar_pax_global(const char *text, size_t length)
{
  static const char *const own[] = { "path", "linkpath", "size", "uid", "gid", "mtime" };
  while (length) {
    struct record record;
    size_t used = next_record(text, length, &record);
    if (!used) return "a malformed extension header";
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
      if (is_key(&record, own[i])) return "an extension header for all entries";
    text += used;
    length -= used;
  }
  return NULL;
}
