#include "files-watched.h"

#include <stdlib.h>
#include <string.h>

static size_t index_of(const struct watched_list *list, int number)
{
  size_t low = 0, high = list->count;
  while (low < high) {
    size_t middle = (low + high) / 2;
    if (list->list[middle].number < number) low = middle + 1;
    else high = middle;
  }
  return low;
}

struct watched *watched_find(const struct watched_list *list, int number)
{
  size_t at = index_of(list, number);
  return at < list->count && list->list[at].number == number && list->list[at].name ? &list->list[at] : NULL;
}

static void sweep(struct watched_list *list)
{
  size_t kept = 0;
  for (size_t i = 0; i < list->count; i++)
    if (list->list[i].name) list->list[kept++] = list->list[i];
  list->count = kept;
  list->gone = 0;
}

static struct watched *insert(struct watched_list *list, int number)
{
  if (list->gone > 64 && list->gone > list->count / 2) sweep(list);
  if (list->count - list->gone >= WATCHED_MOST) return NULL;
  if (list->count == list->room) {
    size_t room = list->room ? list->room * 2 : 64;
    struct watched *grown = realloc(list->list, room * sizeof *grown);
    if (!grown) return NULL;
    list->list = grown;
    list->room = room;
  }
  size_t at = index_of(list, number);
  if (at < list->count && list->list[at].number == number) {
    list->gone--;
    return &list->list[at];
  }
  memmove(&list->list[at + 1], &list->list[at], (list->count - at) * sizeof *list->list);
  list->count++;
  return &list->list[at];
}

bool watched_put(struct watched_list *list, int number, int above, const char *name)
{
  char *copy = strdup(name);
  if (!copy) return false;
  struct watched *known = watched_find(list, number);
  if (known) free(known->name);
  else known = insert(list, number);
  if (known) *known = (struct watched){ .number = number, .above = above, .name = copy };
  else free(copy);
  return known;
}

struct watched *watched_in(const struct watched_list *list, int above, const char *name)
{
  for (size_t i = 0; i < list->count; i++)
    if (list->list[i].name && list->list[i].above == above && !strcmp(list->list[i].name, name)) return &list->list[i];
  return NULL;
}

/* From its end to its beginning, for the folders are known from below. */
bool watched_path(const struct watched_list *list, int number, const char *name, char *path)
{
  char *start = path + FILES_PATH_MOST;
  *start = 0;
  for (size_t step = 0; step <= WATCHED_MOST; step++) {
    size_t length = strlen(name), slash = *name && *start ? 1 : 0;
    if ((size_t)(start - path) < length + slash) return false;
    if (slash) *--start = '/';
    start -= length;
    memcpy(start, name, length);
    const struct watched *folder = watched_find(list, number);
    if (number == WATCHED_ROOT || !folder) {
      memmove(path, start, strlen(start) + 1);
      return number == WATCHED_ROOT;
    }
    name = folder->name;
    number = folder->above;
  }
  return false;
}

bool watched_lies_in(const struct watched_list *list, int number, int folder)
{
  for (size_t step = 0; step <= WATCHED_MOST && number != WATCHED_ROOT; step++) {
    if (number == folder) return true;
    const struct watched *at = watched_find(list, number);
    if (!at) return false;
    number = at->above;
  }
  return false;
}

void watched_drop(struct watched_list *list, struct watched *watched)
{
  free(watched->name);
  watched->name = NULL;
  list->gone++;
}

void watched_free(struct watched_list *list)
{
  for (size_t i = 0; i < list->count; i++) free(list->list[i].name);
  free(list->list);
}
