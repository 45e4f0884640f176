#include "files-trail.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int *slot(struct trail *trail, size_t level)
{
  return &trail->fds[level % TRAIL_FDS];
}

static bool set_level(struct trail *trail, size_t level, const struct stat *stat)
{
  if (level >= TRAIL_LEVELS_MOST) {
    errno = ENAMETOOLONG;
    return false;
  }
  if (level >= trail->levels_room) {
    size_t room = trail->levels_room ? trail->levels_room * 2 : 64;
    struct trail_level *levels = realloc(trail->levels, room * sizeof *levels);
    if (!levels) return false;
    trail->levels = levels;
    trail->levels_room = room;
  }
  trail->levels[level] = (struct trail_level){ .dev = stat->st_dev, .ino = stat->st_ino, .path_length = trail->path_length };
  trail->depth = level;
  return true;
}

bool trail_begin(struct trail *trail, int fd)
{
  struct stat stat;
  *trail = (struct trail){ 0 };
  for (int i = 0; i < TRAIL_FDS; i++) trail->fds[i] = -1;
  trail->fds[0] = fd;
  trail->path = calloc(1, 256);
  trail->path_room = 256;
  return trail->path && fstat(fd, &stat) == 0 && set_level(trail, 0, &stat);
}

bool trail_name(struct trail *trail, const char *name)
{
  size_t length = strlen(name), needed = trail->path_length + length + 2;
  if (needed > TRAIL_PATH_MOST) {
    errno = ENAMETOOLONG;
    return false;
  }
  if (needed > trail->path_room) {
    size_t room = trail->path_room * 2 > needed ? trail->path_room * 2 : needed;
    char *path = realloc(trail->path, room);
    if (!path) return false;
    trail->path = path;
    trail->path_room = room;
  }
  if (trail->path_length) trail->path[trail->path_length++] = '/';
  memcpy(trail->path + trail->path_length, name, length + 1);
  trail->path_length += length;
  return true;
}

void trail_unname(struct trail *trail)
{
  trail->path_length = trail->levels[trail->depth].path_length;
  trail->path[trail->path_length] = 0;
}

bool trail_enter(struct trail *trail, const char *name)
{
  int fd = openat(trail_fd(trail), name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  struct stat stat;
  if (fd < 0) return false;
  trail_unname(trail);
  if (fstat(fd, &stat) < 0 || !trail_name(trail, name) || !set_level(trail, trail->depth + 1, &stat)) {
    int error = errno;
    trail_unname(trail);
    close(fd);
    errno = error;
    return false;
  }
  int *at = slot(trail, trail->depth);
  if (*at >= 0) close(*at);
  *at = fd;
  return true;
}

static int open_above(struct trail *trail)
{
  const struct trail_level *level = &trail->levels[trail->depth - 1];
  int fd = openat(trail_fd(trail), "..", O_PATH | O_DIRECTORY | O_CLOEXEC);
  struct stat stat;
  if (fd < 0) return -1;
  if (fstat(fd, &stat) == 0 && stat.st_dev == level->dev && stat.st_ino == level->ino) return fd;
  close(fd);
  errno = ESTALE;
  return -1;
}

bool trail_leave(struct trail *trail)
{
  int *here = slot(trail, trail->depth), *above = slot(trail, trail->depth - 1);
  if (*above < 0) *above = open_above(trail);
  if (*above < 0) return false;
  close(*here);
  *here = -1;
  trail->depth--;
  trail_unname(trail);
  return true;
}

int trail_fd(const struct trail *trail)
{
  return trail->fds[trail->depth % TRAIL_FDS];
}

dev_t trail_dev(const struct trail *trail)
{
  return trail->levels[trail->depth].dev;
}

void trail_end(struct trail *trail)
{
  for (int i = 0; i < TRAIL_FDS; i++)
    if (trail->fds[i] >= 0) close(trail->fds[i]);
  free(trail->levels);
  free(trail->path);
}
