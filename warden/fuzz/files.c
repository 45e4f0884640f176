#include "files.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../files-request.h"
#include "../tar-read.h"
#include "../tar-write.h"
#include "../wire.h"

#define CHECK(condition) \
  do { \
    if (!(condition)) { \
      fprintf(stderr, "promise broken: %s\n", #condition); \
      abort(); \
    } \
  } while (0)

static void add(void *into, const void *bytes, size_t length)
{
  struct input *input = into;
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

static void add_path(struct input *input, struct chance *chance)
{
  static const char *const paths[] = { "/", "/workspace/a", "/a\nb", "1/usr", "", "a/../b", "relative" };
  const char *path = paths[chance_below(chance, 10) ? chance_below(chance, 4) : chance_below(chance, 7)];
  add_u32(input, (uint32_t)strlen(path));
  add(input, path, strlen(path));
}

/* The first byte is the type of the request, the rest its payload. */
void files_request_seed(struct input *input, struct chance *chance)
{
  uint8_t type = (uint8_t)(1 + chance_below(chance, 15));
  add(input, &type, 1);
  if (type == FILES_READ) add(input, "\0\0\0\0\0\0\0\0\xff\xff\xff\xff\xff\xff\xff\xff", 16);
  else if (type == FILES_SYMLINK) add_path(input, chance);
  else if (type != FILES_PROCESSES) add_u32(input, chance_below(chance, type == FILES_STAT && chance_below(chance, 8) ? (STAT_FOLLOW | STAT_HASH) + 1 : 16));
  if (type == FILES_WRITE || type == FILES_LIST || type == FILES_SEARCH) add_u32(input, chance_below(chance, 2) ? 0644 : UINT32_MAX);
  if (type != FILES_PROCESSES) add_path(input, chance);
  if (type == FILES_MOVE || type == FILES_COPY || type == FILES_SEARCH) add_path(input, chance);
}

void files_archive_seed(struct input *input, struct chance *chance)
{
  const struct tar_sink sink = { .put = add, .into = input };
  char name[300];
  memset(name, 'n', sizeof name);
  for (size_t i = 20; i < sizeof name; i += 60) name[i] = '/';
  for (uint32_t i = 1 + chance_below(chance, 3); i; i--) {
    struct tar_entry entry = { .type = "01256"[chance_below(chance, 5)], .name = name, .link = name, .mode = 0644 };
    entry.name_length = 1 + chance_below(chance, sizeof name);
    entry.link_length = chance_below(chance, 2) ? 0 : chance_below(chance, sizeof name);
    entry.mtime = (struct timespec){ .tv_sec = (time_t)chance_below(chance, 4) - 2, .tv_nsec = chance_below(chance, 2) };
    entry.uid = chance_below(chance, 2) ? 0 : UINT32_MAX - 1;
    entry.size = entry.type == TAR_FILE ? chance_below(chance, 700) : 0;
    CHECK(tar_put_header(&sink, &entry));
    add(input, name, entry.size < sizeof name ? (size_t)entry.size : sizeof name);
    if (entry.size > sizeof name) add(input, input->bytes, (size_t)entry.size - sizeof name);
    tar_put_padding(&sink, entry.size);
  }
  if (chance_below(chance, 4)) tar_put_end(&sink);
}

int files_try_request(const uint8_t *bytes, size_t length)
{
  struct request request;
  if (!length) return 0;
  const char *why = request_parse(bytes[0], bytes + 1, length - 1, &request);
  if (why) return 0;
  CHECK(strlen(request.path) <= FILES_PATH_MOST && strlen(request.other) <= FILES_PATH_MOST);
  bool in_layers = (request.type == FILES_LIST || request.type == FILES_PACK) && request.flags & IN_LAYERS;
  if (request.type != FILES_PROCESSES) CHECK(in_layers ? request.path[0] != '/' : request.path[0] == '/');
  if (in_layers) CHECK(strcmp(request.path, "..") && !strstr(request.path, "/../"));
  CHECK(request.offset <= INT64_MAX);
  return 1;
}

struct memory {
  const uint8_t *bytes;
  size_t left;
};

static size_t pull(void *from, uint8_t *into, size_t length)
{
  struct memory *memory = from;
  if (length > memory->left) length = memory->left;
  memcpy(into, memory->bytes, length);
  memory->bytes += length;
  memory->left -= length;
  return length;
}

int files_try_archive(const uint8_t *bytes, size_t length)
{
  struct memory memory = { bytes, length };
  struct tar_reader reader = { .pull = pull, .from = &memory };
  struct tar_entry entry;
  enum tar_result result;
  uint8_t content[100];
  while ((result = tar_next(&reader, &entry)) == TAR_ENTRY) {
    CHECK(!reader.why && strchr("01256", entry.type) && entry.mode <= 07777 && entry.size <= INT64_MAX);
    CHECK(entry.name && strlen(entry.name) == entry.name_length && entry.name_length <= TAR_NAME_MOST);
    CHECK(entry.link && strlen(entry.link) == entry.link_length && entry.mtime.tv_nsec >= 0 && entry.mtime.tv_nsec < 1000000000);
    if (entry.mode & 1) CHECK(tar_content(&reader, content, sizeof content) <= (ssize_t)sizeof content);
  }
  CHECK((result == TAR_WRONG) == (reader.why != NULL));
  tar_reader_free(&reader);
  return result == TAR_END;
}
