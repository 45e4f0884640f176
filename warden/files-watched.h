/* The folders that are watched, by the kernel's number for each: where each lies is known by the folder above it, so that moving one moves all in it. */
#ifndef GLOVEBOX_FILES_WATCHED_H
#define GLOVEBOX_FILES_WATCHED_H

#include <stdbool.h>
#include <stddef.h>

#include "files-request.h"

enum { WATCHED_MOST = 65536, WATCHED_ROOT = -1 };

struct watched {
  int number, above; /* above is WATCHED_ROOT for the folder that was asked for */
  char *name;        /* NULL: no longer watched */
};

struct watched_list {
  struct watched *list; /* by rising number */
  size_t count, room, gone;
};

struct watched *watched_find(const struct watched_list *list, int number);
/* Adds it, or moves it when it is known. False when there are too many, or no memory. */
bool watched_put(struct watched_list *list, int number, int above, const char *name);
/* The folder so called in that one; NULL when it is not watched. */
struct watched *watched_in(const struct watched_list *list, int above, const char *name);
/* The path of `name` in a folder, below the one that was asked for; false when it is too long. `path` has room for FILES_PATH_MOST + 1. */
bool watched_path(const struct watched_list *list, int number, const char *name, char *path);
bool watched_lies_in(const struct watched_list *list, int number, int folder);
void watched_drop(struct watched_list *list, struct watched *watched);
void watched_free(struct watched_list *list);

#endif
