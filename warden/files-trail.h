/*
 * Where a walk through a tree stands: the path from a folder down to the deepest one entered, by open folders instead of by name, so that no link is
 * ever followed and no path is too long for the kernel. Only the latest are held open; to an earlier one it returns by `..`, and only when that is
 * the very folder it came from.
 */
#ifndef GLOVEBOX_FILES_TRAIL_H
#define GLOVEBOX_FILES_TRAIL_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum { TRAIL_FDS = 16, TRAIL_LEVELS_MOST = 131072, TRAIL_PATH_MOST = 4 * 1024 * 1024 };

struct trail_level {
  dev_t dev;
  ino_t ino;
  size_t path_length;
};

struct trail {
  struct trail_level *levels;
  size_t depth, levels_room; /* depth is the number of levels below the first folder */
  int fds[TRAIL_FDS];        /* of level N at N modulo TRAIL_FDS; -1 where it is closed */
  char *path;                /* below the first folder */
  size_t path_length, path_room;
};

/* Begins at a folder, and takes its descriptor. Every failure is told by errno. */
bool trail_begin(struct trail *trail, int fd);
bool trail_enter(struct trail *trail, const char *name);
/* Back to the folder above; the path is cut. */
bool trail_leave(struct trail *trail);
int trail_fd(const struct trail *trail);
dev_t trail_dev(const struct trail *trail);
/* The path with `name` behind it, without entering it; trail_unname takes it off again. */
bool trail_name(struct trail *trail, const char *name);
void trail_unname(struct trail *trail);
void trail_end(struct trail *trail);

#endif
