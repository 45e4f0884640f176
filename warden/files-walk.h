/* A walk through a tree in the order of its names, in bounded memory whatever the tree is. */
#ifndef GLOVEBOX_FILES_WALK_H
#define GLOVEBOX_FILES_WALK_H

#include <sys/stat.h>

#include "files-names.h"
#include "files-trail.h"

struct walk_level {
  struct names *names; /* NULL: forgotten, to be read again after the last one visited */
  size_t next;
  bool over; /* nothing comes after the last one visited */
};

struct walk {
  struct trail trail;
  struct walk_level *levels;
  size_t levels_room;
  size_t kept_bytes, kept_from; /* of all `names`, and the first level that may have some */
  bool skip_hidden;
  char last[NAMES_NAME_ROOM];   /* visited in the deepest folder */
};

enum walk_step {
  WALK_ENTRY, /* something in the deepest folder: enter it with walk_enter, or go on */
  WALK_LEFT,  /* all of a folder was visited; the walk stands in the folder above */
  WALK_MISSED, /* errno: something could not be looked at; the walk goes on after it */
  WALK_FAILED, /* errno: the walk cannot go on */
  WALK_OVER,
};

/* Valid until the next step; name and path point into the walk. */
struct walk_entry {
  int folder;
  const char *name;
  const char *path; /* below where the walk began */
  size_t path_length;
  struct stat stat; /* of WALK_ENTRY */
};

/* Takes the descriptor, also when it fails. Every begun walk is ended. */
bool walk_begin(struct walk *walk, int fd);
enum walk_step walk_next(struct walk *walk, struct walk_entry *entry);
/* Into the folder of the latest WALK_ENTRY. False, and errno, when it cannot be read: the walk goes on beside it. */
bool walk_enter(struct walk *walk);
/* How many folders above an entry of this step: 1 where the walk began. */
size_t walk_depth(const struct walk *walk);
void walk_end(struct walk *walk);

#endif
