/* Where the entries of an archive land: always beneath one folder, by its open folders, so that no link is ever followed. */
#ifndef GLOVEBOX_FILES_LANDING_H
#define GLOVEBOX_FILES_LANDING_H

#include <stdbool.h>

#include "files-names.h"
#include "files-trail.h"

/* A name of an archive, without `.` and empty parts: the folder above and the last part; both empty for the folder itself. */
struct place {
  char *above; /* in memory of its own */
  size_t above_length;
  char name[NAMES_NAME_ROOM];
};

/* EPERM for what leads out: `..`, or a beginning with `/`. */
bool place_of(struct place *place, const char *name);
/* Moves the trail there; `make` makes the folders that are missing. */
bool landing_reach(struct trail *trail, const char *above, bool make);

/* What is set on folders once nothing more comes into them. */
struct late_folder {
  char *path;
  uint32_t mode, order;
  struct timespec mtime;
};

struct late_folders {
  struct late_folder *list;
  size_t count, room, bytes;
  uint32_t next;
};

bool late_add(struct late_folders *late, const struct late_folder *folder);
/* Sets those that are not above `current` (all, when it is NULL) and forgets them. */
bool late_apply(struct late_folders *late, struct trail *trail, const char *current);
bool late_is_full(const struct late_folders *late);
void late_free(struct late_folders *late);

#endif
