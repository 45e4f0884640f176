/* The operations that are one call and what it takes to tell of it: STAT, MKDIR, SYMLINK, CHMOD. */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "files-hash.h"
#include "files-operations.h"
#include "files-paths.h"

enum { MODE_NOT_GIVEN_FOLDER = 0755 };

void files_stat(struct files *files, const struct request *request)
{
  struct stat stat;
  uint8_t digest[FILES_HASH_LENGTH];
  if (request->flags & STAT_HASH && hash_file(AT_FDCWD, request->path, &stat, digest)) {
    reply_entry(files, &(struct told){ .stat = &stat, .hash = digest });
    return reply_done(files, 1);
  }
  paths_tell(files, request->path, request->flags & STAT_FOLLOW ? 0 : AT_SYMLINK_NOFOLLOW);
}

void files_mkdir(struct files *files, const struct request *request)
{
  struct stat stat;
  const char *path = request->path;
  mode_t mode = request->number == UINT32_MAX ? MODE_NOT_GIVEN_FOLDER : request->number;
  bool made = mkdir(path, mode) == 0;
  if (!made && errno == ENOENT && paths_make_above(path)) made = mkdir(path, mode) == 0;
  /* mkdir(2) keeps nothing but the permission bits, and what a group's folder passes on. */
  if (made && mode & ~0777u && chmod(path, mode) < 0) return reply_error(files, "chmod", path);
  if (!made && errno == EEXIST) {
    made = fstatat(AT_FDCWD, path, &stat, 0) == 0 && S_ISDIR(stat.st_mode);
    errno = EEXIST;
  }
  if (!made) return reply_error(files, "mkdir", path);
  paths_tell(files, path, 0);
}

void files_symlink(struct files *files, const struct request *request)
{
  if (symlink(request->other, request->path) < 0) return reply_error(files, "link", request->path);
  paths_tell(files, request->path, AT_SYMLINK_NOFOLLOW);
}

void files_chmod(struct files *files, const struct request *request)
{
  if (chmod(request->path, request->number) < 0) return reply_error(files, "chmod", request->path);
  paths_tell(files, request->path, 0);
}
