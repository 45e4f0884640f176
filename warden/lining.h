/* What the liners of a cell are made of: which folders each gets anew, and what of /proc is closed in each as it is in the cell. */
#ifndef GLOVEBOX_LINING_H
#define GLOVEBOX_LINING_H

#include <stdint.h>
#include <sys/types.h>

#include "arguments.h"

enum { LINING_PATH_MOST = 63, LINING_FOLDERS_MOST = 8, LINING_COVERS_MOST = 64 };

enum lining_cover { COVER_FILE, COVER_FOLDER };

/* Without pointers: it is sent to those who make liners. */
struct lining {
  uint32_t uid, gid; /* of whoever makes liners, as the cell sees them */
  uint32_t folder_count;
  struct {
    char path[LINING_PATH_MOST + 1];
    uint32_t mode; /* 0: it is taken away, and none put in its place */
  } folders[LINING_FOLDERS_MOST];
  uint32_t cover_count;
  struct {
    char path[LINING_PATH_MOST + 1];
    uint32_t how;
  } covers[LINING_COVERS_MOST];
};

/* Once the cell's own mounts are made. Dies when there is more than a liner can have. NULL when no liners are wanted. */
struct lining *lining_plan(const struct arguments *arguments);

#endif
