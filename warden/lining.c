#include "lining.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "die.h"

static void copy_path(char *to, const char *path)
{
  errno = ENAMETOOLONG;
  if (strlen(path) > LINING_PATH_MOST) die("line", path);
  strcpy(to, path);
}

/* One of root's that is closed to all others is none of a liner's, where there is no root. */
static void add_folder(struct lining *lining, const struct writable *writable)
{
  const bool closed = writable->uid == 0 && !(writable->mode & S_IRWXO);
  errno = E2BIG;
  if (lining->folder_count == LINING_FOLDERS_MOST) die("line", writable->path);
  copy_path(lining->folders[lining->folder_count].path, writable->path);
  lining->folders[lining->folder_count++].mode = closed ? 0 : writable->mode;
}

/* What this kernel does not have need not be looked for each time. */
static void add_cover(struct lining *lining, const char *path)
{
  struct stat entry;
  if (strncmp(path, "/proc/", 6) || stat(path, &entry) < 0) return;
  errno = E2BIG;
  if (lining->cover_count == LINING_COVERS_MOST) die("line", path);
  copy_path(lining->covers[lining->cover_count].path, path);
  /* A mask of a file is a device. */
  lining->covers[lining->cover_count++].how = S_ISDIR(entry.st_mode) ? COVER_FOLDER : COVER_FILE;
}

struct lining *lining_plan(const struct arguments *arguments)
{
  if (!arguments->cradle) return NULL;
  struct lining *lining = calloc(1, sizeof *lining);
  if (!lining) die("allocate", "the lining");
  lining->uid = arguments->cradle_uid;
  lining->gid = arguments->cradle_gid;
  for (size_t i = 0; i < arguments->writable_count; i++) add_folder(lining, &arguments->writables[i]);
  for (size_t i = 0; i < arguments->masks.count; i++) add_cover(lining, arguments->masks.list[i]);
  return lining;
}
