/* A file that is written beside its place and comes there all at once. Until then it has no name where the file system can do without one, so that
 * not even a killed worker leaves anything. */
#ifndef GLOVEBOX_FILES_DRAFT_H
#define GLOVEBOX_FILES_DRAFT_H

#include <stdbool.h>
#include <sys/types.h>

#include "files-request.h"

struct draft {
  int fd, folder;
  char name[64];                   /* empty while it has none */
  char final[FILES_PATH_MOST + 1];
};

/* For the file at `path`, whose folder must be there. Failures are told by errno. */
bool draft_open(struct draft *draft, const char *path);
/* Puts it in its place; `exclusive` where nothing is. Whether it succeeds or not, the draft is over. */
bool draft_place(struct draft *draft, bool exclusive);
void draft_drop(struct draft *draft);

#endif
