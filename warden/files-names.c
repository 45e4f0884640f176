#include "files-names.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int compare(const void *left, const void *right, void *text)
{
  return strcmp((const char *)text + *(const uint32_t *)left, (const char *)text + *(const uint32_t *)right);
}

static void sort(struct names *names)
{
  if (names->count) qsort_r(names->starts, names->count, sizeof *names->starts, compare, names->text);
}

const char *names_at(const struct names *names, size_t index)
{
  return names->text + names->starts[index];
}

size_t names_size(const struct names *names)
{
  return sizeof *names + names->text_room + names->starts_room * sizeof *names->starts;
}

void names_free(struct names *names)
{
  if (!names) return;
  free(names->text);
  free(names->starts);
  free(names);
}

/* Keeps the smaller half, and remembers where it was cut: whatever is greater will be read another time. */
static bool cut(struct names *names)
{
  char *text = malloc(names->text_room);
  if (!text) return false;
  sort(names);
  names->count /= 2;
  size_t used = 0;
  for (size_t i = 0; i < names->count; i++) {
    size_t length = strlen(names_at(names, i)) + 1;
    memcpy(text + used, names_at(names, i), length);
    names->starts[i] = (uint32_t)used;
    used += length;
  }
  free(names->text);
  names->text = text;
  names->used = used;
  names->more = true;
  strcpy(names->limit, names_at(names, names->count - 1));
  return true;
}

static bool make_room(struct names *names, size_t length)
{
  if (names->used + length > names->text_room) {
    size_t room = names->text_room ? names->text_room * 2 : 512;
    char *text = realloc(names->text, room);
    if (!text) return false;
    names->text = text;
    names->text_room = room;
  }
  if (names->count == names->starts_room) {
    size_t room = names->starts_room ? names->starts_room * 2 : 32;
    uint32_t *starts = realloc(names->starts, room * sizeof *starts);
    if (!starts) return false;
    names->starts = starts;
    names->starts_room = room;
  }
  return true;
}

static bool add(struct names *names, const char *name)
{
  size_t length = strlen(name) + 1;
  if (names->used + length + (names->count + 1) * sizeof *names->starts > NAMES_BYTES_MOST && !cut(names)) return false;
  if (length > NAMES_NAME_ROOM || (names->more && strcmp(name, names->limit) > 0)) return true;
  if (!make_room(names, length)) return false;
  memcpy(names->text + names->used, name, length);
  names->starts[names->count++] = (uint32_t)names->used;
  names->used += length;
  return true;
}

static bool is_dots(const char *name)
{
  return name[0] == '.' && (!name[1] || (name[1] == '.' && !name[2]));
}

static bool read_all(DIR *folder, const char *after, struct names *names)
{
  for (;;) {
    errno = 0;
    struct dirent *entry = readdir(folder);
    if (!entry) return errno == 0;
    if (is_dots(entry->d_name) || strcmp(entry->d_name, after) <= 0) continue;
    if (!add(names, entry->d_name)) {
      errno = ENOMEM;
      return false;
    }
  }
}

struct names *names_read(int fd, const char *after)
{
  int own = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (own < 0) return NULL;
  DIR *folder = fdopendir(own);
  struct names *names = folder ? calloc(1, sizeof *names) : NULL;
  bool whole = names && read_all(folder, after, names);
  int error = errno;
  if (folder) closedir(folder);
  else close(own);
  if (whole) {
    sort(names);
    return names;
  }
  names_free(names);
  errno = error;
  return NULL;
}
