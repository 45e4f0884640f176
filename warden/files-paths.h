/* What several operations do with a path. Failures are told by errno. */
#ifndef GLOVEBOX_FILES_PATHS_H
#define GLOVEBOX_FILES_PATHS_H

#include <stdbool.h>
#include <sys/stat.h>

#include "files-frames.h"

enum { PATHS_LINKS_MOST = 40 };

/* Makes the folders above `path`, or also itself. */
bool paths_make_above(const char *path);
/* Splits off the last component into `folder` and `name` (of FILES_PATH_MOST + 1 each): `/a/b/` is `/a` and `b`; false for `/`. */
bool paths_split(const char *path, char *folder, char *name);
/* Where writing to `path` would land: its links are followed as long as the last component is one. `landing` has room for FILES_PATH_MOST + 1. */
bool paths_follow(const char *path, char *landing);
/* Opens for work beneath it, by O_PATH; links on the way are followed. Of a request with IN_LAYERS: below the layers folder, none is. */
int paths_open_folder(const struct files *files, const struct request *request);
/* The word for what cannot be read or written like a file, NULL for what can; errno says which. */
const char *paths_unfit(mode_t mode);
/* ENTRY and DONE(1), or ERROR. `follow` is AT_SYMLINK_NOFOLLOW or 0. */
void paths_tell(struct files *files, const char *path, int follow);
/* Of a link, as it is written there; false when it cannot be read. `target` has room for FILES_PATH_MOST + 1. */
bool paths_target(int folder, const char *name, char *target);
/* A name nothing has yet, `.glovebox-`, our number and chance. */
void paths_invent(char *name, size_t room);

#endif
