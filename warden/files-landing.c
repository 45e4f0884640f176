#include "files-landing.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LATE_BYTES_MOST = 8 * 1024 * 1024, MADE_MODE = 0755 };

static bool refuse(int error)
{
  errno = error;
  return false;
}

/* Takes one more part to the end of `above` and keeps it as the last. */
static bool add_part(struct place *place, const char *part, size_t length)
{
  if (length == 2 && !memcmp(part, "..", 2)) return refuse(EPERM);
  if (length >= sizeof place->name) return refuse(ENAMETOOLONG);
  if (place->name[0]) {
    char *end = place->above + place->above_length;
    if (place->above_length) *end++ = '/';
    place->above_length = (size_t)(stpcpy(end, place->name) - place->above);
  }
  memcpy(place->name, part, length);
  place->name[length] = 0;
  return true;
}

bool place_of(struct place *place, const char *name)
{
  *place = (struct place){ .above = calloc(1, strlen(name) + 1) };
  if (!place->above) return refuse(ENOMEM);
  bool fine = name[0] != '/' || refuse(EPERM);
  for (const char *at = name; fine && *at;) {
    size_t length = strcspn(at, "/");
    bool counts = length && !(length == 1 && *at == '.');
    if (counts) fine = add_part(place, at, length);
    at += length + (at[length] == '/');
  }
  if (fine) return true;
  int error = errno;
  free(place->above);
  place->above = NULL;
  return refuse(error);
}

/* Whether `path` is `folder` or lies in it. */
static bool is_in(const char *path, const char *folder)
{
  size_t length = strlen(folder);
  return !length || (!strncmp(path, folder, length) && (path[length] == 0 || path[length] == '/'));
}

bool landing_reach(struct trail *trail, const char *above, bool make)
{
  while (!is_in(above, trail->path))
    if (!trail_leave(trail)) return false;
  const char *at = above + trail->path_length;
  while (*at) {
    at += *at == '/';
    char name[NAMES_NAME_ROOM];
    size_t length = strcspn(at, "/");
    memcpy(name, at, length);
    name[length] = 0;
    at += length;
    if (trail_enter(trail, name)) continue;
    if (errno != ENOENT || !make) return false;
    if (mkdirat(trail_fd(trail), name, MADE_MODE) < 0 || !trail_enter(trail, name)) return false;
  }
  return true;
}

bool late_add(struct late_folders *late, const struct late_folder *folder)
{
  if (late->count == late->room) {
    size_t room = late->room ? late->room * 2 : 64;
    struct late_folder *list = realloc(late->list, room * sizeof *list);
    if (!list) return refuse(ENOMEM);
    late->list = list;
    late->room = room;
  }
  struct late_folder *added = &late->list[late->count];
  *added = *folder;
  added->path = strdup(folder->path);
  if (!added->path) return refuse(ENOMEM);
  added->order = late->next++;
  late->count++;
  late->bytes += sizeof *added + strlen(added->path);
  return true;
}

bool late_is_full(const struct late_folders *late)
{
  return late->bytes > LATE_BYTES_MOST;
}

/* Backwards by path, so that a folder comes after all in it; of one named twice the later first. */
static int compare(const void *left, const void *right)
{
  const struct late_folder *a = left, *b = right;
  int order = strcmp(b->path, a->path);
  return order ? order : (a->order < b->order) - (a->order > b->order);
}

static bool set(struct trail *trail, const struct late_folder *folder)
{
  struct timespec times[2] = { { .tv_nsec = UTIME_OMIT }, folder->mtime };
  if (!landing_reach(trail, folder->path, false)) return false;
  int fd = openat(trail_fd(trail), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  /* What was there before may be another's. */
  if (fd < 0) return errno == EACCES;
  bool done = (futimens(fd, times) == 0 || errno == EPERM || errno == EACCES) && (fchmod(fd, folder->mode) == 0 || errno == EPERM);
  int error = errno;
  close(fd);
  return done || refuse(error);
}

static bool stays(const struct late_folder *folder, const char *current)
{
  return current && is_in(current, folder->path);
}

static void forget_applied(struct late_folders *late, const char *current)
{
  size_t kept = 0;
  late->bytes = 0;
  for (size_t i = 0; i < late->count; i++) {
    struct late_folder folder = late->list[i];
    if (!stays(&folder, current)) {
      free(folder.path);
      continue;
    }
    late->bytes += sizeof folder + strlen(folder.path);
    late->list[kept++] = folder;
  }
  late->count = kept;
}

bool late_apply(struct late_folders *late, struct trail *trail, const char *current)
{
  bool fine = true;
  if (late->count) qsort(late->list, late->count, sizeof *late->list, compare);
  for (size_t i = 0; fine && i < late->count; i++) {
    bool again = i > 0 && !strcmp(late->list[i - 1].path, late->list[i].path);
    if (!again && !stays(&late->list[i], current)) fine = set(trail, &late->list[i]);
  }
  int error = errno;
  forget_applied(late, current);
  return fine || refuse(error);
}

void late_free(struct late_folders *late)
{
  for (size_t i = 0; i < late->count; i++) free(late->list[i].path);
  free(late->list);
}
