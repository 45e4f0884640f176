#include "files-paths.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

bool paths_make_above(const char *path)
{
  char above[FILES_PATH_MOST + 1];
  strcpy(above, path);
  for (char *slash = strchr(above + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
    if (!slash[strspn(slash, "/")]) break;
    *slash = 0;
    if (mkdir(above, 0755) < 0 && errno != EEXIST) return false;
    *slash = '/';
  }
  return true;
}

bool paths_split(const char *path, char *folder, char *name)
{
  size_t end = strlen(path);
  while (end > 0 && path[end - 1] == '/') end--;
  size_t start = end;
  while (start > 0 && path[start - 1] != '/') start--;
  if (start == end) {
    errno = EBUSY;
    return false;
  }
  memcpy(name, path + start, end - start);
  name[end - start] = 0;
  while (start > 1 && path[start - 1] == '/') start--;
  memcpy(folder, path, start);
  folder[start] = 0;
  return true;
}

bool paths_target(int folder, const char *name, char *target)
{
  ssize_t length = readlinkat(folder, name, target, FILES_PATH_MOST + 1);
  target[length < 0 ? 0 : length > FILES_PATH_MOST ? FILES_PATH_MOST : length] = 0;
  return length >= 0;
}

bool paths_follow(const char *path, char *landing)
{
  char folder[FILES_PATH_MOST + 1], name[FILES_PATH_MOST + 1], target[FILES_PATH_MOST + 1];
  strcpy(landing, path);
  for (int links = 0; paths_target(AT_FDCWD, landing, target); links++) {
    errno = ELOOP;
    if (links == PATHS_LINKS_MOST || !paths_split(landing, folder, name)) return false;
    bool absolute = target[0] == '/';
    size_t length = strlen(target) + (absolute ? 0 : strlen(folder) + 1);
    errno = ENAMETOOLONG;
    if (length > FILES_PATH_MOST) return false;
    if (absolute) strcpy(landing, target);
    else stpcpy(stpcpy(stpcpy(landing, folder), "/"), target);
  }
  return true;
}

static int open_below(int folder, const char *path)
{
  char name[FILES_PATH_MOST + 1];
  int fd = openat(folder, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
  for (const char *at = path; fd >= 0 && *at;) {
    size_t length = strcspn(at, "/");
    memcpy(name, at, length);
    name[length] = 0;
    at += length + (at[length] == '/');
    if (!length) continue;
    int below = openat(fd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    int error = errno;
    close(fd);
    errno = error;
    fd = below;
  }
  return fd;
}

int paths_open_folder(const struct files *files, const struct request *request)
{
  if (!(request->flags & IN_LAYERS)) return open(request->path, O_PATH | O_DIRECTORY | O_CLOEXEC);
  errno = EOPNOTSUPP;
  return files->layers < 0 ? -1 : open_below(files->layers, request->path);
}

const char *paths_unfit(mode_t mode)
{
  errno = S_ISDIR(mode) ? EISDIR : ENXIO;
  if (S_ISREG(mode)) return NULL;
  if (S_ISDIR(mode)) return "is a folder:";
  if (S_ISFIFO(mode)) return "is a FIFO:";
  return S_ISSOCK(mode) ? "is a socket:" : "is a device:";
}

void paths_tell(struct files *files, const char *path, int follow)
{
  struct stat stat;
  char target[FILES_PATH_MOST + 1];
  if (fstatat(AT_FDCWD, path, &stat, follow) < 0) return reply_error(files, "stat", path);
  bool is_link = S_ISLNK(stat.st_mode) && paths_target(AT_FDCWD, path, target);
  reply_entry(files, &(struct told){ .stat = &stat, .target = is_link ? target : NULL });
  reply_done(files, 1);
}

void paths_invent(char *name, size_t room)
{
  uint64_t chance;
  struct timespec now;
  /* A clash is harmless, it is only made with O_EXCL: so where the filter refuses chance, the clock will do. */
  if (getrandom(&chance, sizeof chance, GRND_NONBLOCK) != (ssize_t)sizeof chance) {
    clock_gettime(CLOCK_MONOTONIC, &now);
    chance = (uint64_t)now.tv_nsec << 32 ^ (uint64_t)now.tv_sec ^ (uint64_t)getpid() << 16;
  }
  /* With our number, so that whoever ends us knows what is left of us. */
  snprintf(name, room, ".glovebox-%d-%016llx", (int)getpid(), (unsigned long long)chance);
}
