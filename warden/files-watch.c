/* WATCH: tells what happens in a folder until the input ends. */
#include "files-watch.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "files-operations.h"
#include "files-paths.h"
#include "files-walk.h"

enum { EVENTS_ROOM = 65536 };

int64_t watch_now_ms(void)
{
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

void watch_tell(struct watch *watch, uint32_t kind, const char *path, const char *to)
{
  if (kind == EVENT_CHANGED && watch->has_last && !strcmp(watch->last, path)) return;
  watch->has_last = kind == EVENT_CHANGED;
  if (watch->has_last) strcpy(watch->last, path);
  reply_begin(watch->files, REPLY_EVENT);
  reply_u32(watch->files, kind);
  reply_text(watch->files, path, strlen(path));
  reply_text(watch->files, to, strlen(to));
  reply_end(watch->files);
}

/* Not everything is watched: whoever keeps a picture must look again, and once is told why. */
static void tell_bound(struct watch *watch, const char *path)
{
  int error = errno;
  if (!watch->begun) {
    watch->early_error = error;
    return;
  }
  watch_tell(watch, EVENT_OVERFLOW, "", "");
  if (watch->told_bound) return;
  watch->told_bound = true;
  errno = error;
  reply_error(watch->files, "watch", path);
}

static bool is_gone(int error)
{
  return error == ENOENT || error == ENOTDIR || error == EACCES || error == ELOOP;
}

/* A folder that is mounted in itself has one number for both: it stays where it was. */
static bool is_itself(const struct watch *watch, int number, const struct watch_place *place)
{
  return watched_find(&watch->watched, number) && watched_lies_in(&watch->watched, place->above, number);
}

/* The number of the watch, or -1 when it has none. */
static int add_one(struct watch *watch, const struct watch_place *place)
{
  char path[2 * FILES_PATH_MOST + 2];
  const uint32_t mask = IN_CREATE | IN_DELETE | IN_MODIFY | IN_CLOSE_WRITE | IN_ATTRIB | IN_MOVED_FROM | IN_MOVED_TO | IN_DELETE_SELF | IN_MOVE_SELF;
  bool is_root = place->above == WATCHED_ROOT;
  stpcpy(stpcpy(stpcpy(path, watch->folder), *place->path ? "/" : ""), place->path);
  int number = -1;
  errno = ENAMETOOLONG;
  if (strlen(path) <= FILES_PATH_MOST) number = inotify_add_watch(watch->inotify, path, mask | IN_ONLYDIR | IN_EXCL_UNLINK | (is_root ? 0 : IN_DONT_FOLLOW));
  if (number >= 0 && is_itself(watch, number, place)) return -1;
  if (number >= 0 && !watched_put(&watch->watched, number, place->above, place->name)) {
    inotify_rm_watch(watch->inotify, number);
    errno = ENOSPC;
    number = -1;
  }
  if (number < 0 && !is_root && !is_gone(errno)) tell_bound(watch, path);
  return number;
}

static int number_above(const struct watch *watch, int number)
{
  const struct watched *watched = watched_find(&watch->watched, number);
  return watched ? watched->above : -1;
}

/* Listed only after it is watched: what comes meanwhile is told twice rather than never. */
static void add_beneath(struct watch *watch, int number, const struct watch_place *place)
{
  char path[2 * FILES_PATH_MOST + 2];
  struct walk walk;
  struct walk_entry entry;
  stpcpy(stpcpy(stpcpy(path, watch->folder), *place->path ? "/" : ""), place->path);
  int fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC | (place->above == WATCHED_ROOT ? 0 : O_NOFOLLOW));
  enum walk_step step = fd >= 0 && walk_begin(&walk, fd) ? WALK_ENTRY : WALK_OVER;
  int above = number;
  while (step != WALK_OVER && step != WALK_FAILED && !watch->files->over) {
    step = walk_next(&walk, &entry);
    if (step == WALK_LEFT) above = number_above(watch, above);
    if (step != WALK_ENTRY) continue;
    size_t prefix = strlen(place->path);
    if (prefix + 1 + entry.path_length > FILES_PATH_MOST) continue;
    stpcpy(stpcpy(stpcpy(path, place->path), prefix ? "/" : ""), entry.path);
    if (place->tell) watch_tell(watch, EVENT_CREATED, path, "");
    if (!S_ISDIR(entry.stat.st_mode) || above < 0 || !watch->recursive) continue;
    const struct watch_place below = { .above = above, .name = entry.name, .path = path };
    int added = add_one(watch, &below);
    if (added >= 0 && walk_enter(&walk)) above = added;
  }
  if (fd >= 0) walk_end(&walk);
}

bool watch_add(struct watch *watch, const struct watch_place *place)
{
  int number = add_one(watch, place);
  if (number < 0) return false;
  if (watch->recursive || place->tell) add_beneath(watch, number, place);
  return true;
}

/* Also everything watched beneath. */
void watch_forget(struct watch *watch, int number)
{
  struct watched_list *list = &watch->watched;
  /* Whoever lies in it is known by the way up through it, so it goes last. */
  for (size_t i = 0; i < list->count; i++) {
    struct watched *each = &list->list[i];
    if (!each->name || each->number == number || !watched_lies_in(list, each->number, number)) continue;
    inotify_rm_watch(watch->inotify, each->number);
    each->above = number;
  }
  for (size_t i = 0; i < list->count; i++) {
    struct watched *each = &list->list[i];
    if (each->name && each->above == number && each->number != number) watched_drop(list, each);
  }
  struct watched *itself = watched_find(list, number);
  if (!itself) return;
  inotify_rm_watch(watch->inotify, number);
  watched_drop(list, itself);
}

static bool take_events(struct watch *watch, char *events)
{
  ssize_t got = read(watch->inotify, events, EVENTS_ROOM);
  if (got < 0) return errno == EINTR || errno == EAGAIN;
  for (ssize_t at = 0; at < got;) {
    const struct inotify_event *event = (const void *)(events + at);
    watch_take(watch, event);
    at += (ssize_t)sizeof *event + event->len;
  }
  return true;
}

static int patience_ms(const struct watch *watch)
{
  int64_t now = watch_now_ms(), least = -1;
  for (int i = 0; i < MOVES_MOST; i++) {
    if (!watch->departures[i].cookie) continue;
    int64_t left = watch->departures[i].until_ms > now ? watch->departures[i].until_ms - now : 0;
    if (least < 0 || left < least) least = left;
  }
  return (int)least;
}

static void follow(struct watch *watch)
{
  char *events = malloc(EVENTS_ROOM);
  struct files *files = watch->files;
  while (events && reply_flush(files)) {
    struct pollfd ends[2] = { { .fd = watch->inotify, .events = POLLIN }, { .fd = files->input, .events = POLLIN } };
    watch->has_last = false;
    if (poll(ends, 2, patience_ms(watch)) < 0 && errno != EINTR) break;
    if (ends[0].revents && !take_events(watch, events)) break;
    watch_give_up(watch, watch_now_ms());
    if (!ends[1].revents) continue;
    struct frame_in frame;
    if (files_take(files, &frame)) files->fault = "request amid a watch";
    break;
  }
  files->over = true;
  free(events);
}

/* What is no folder is watched from the folder it lies in: so it is seen when it is replaced, too. */
static bool choose(struct watch *watch)
{
  struct stat stat;
  const char *path = watch->request->path;
  if (fstatat(AT_FDCWD, path, &stat, 0) < 0) return false;
  if (!S_ISDIR(stat.st_mode)) return paths_split(path, watch->folder, watch->only);
  size_t length = strlen(path);
  while (length > 1 && path[length - 1] == '/') length--;
  memcpy(watch->folder, path, length);
  watch->folder[length] = 0;
  return true;
}

void files_watch(struct files *files, const struct request *request)
{
  struct watch *watch = calloc(1, sizeof *watch);
  if (!watch) return reply_error(files, "watch", request->path);
  watch->files = files;
  watch->request = request;
  watch->inotify = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
  bool begun = watch->inotify >= 0 && choose(watch);
  watch->recursive = !watch->only[0] && request->flags & WATCH_RECURSIVE;
  begun = begun && watch_add(watch, &(struct watch_place){ .above = WATCHED_ROOT, .name = "", .path = "" });
  if (begun) {
    reply_done(files, 0);
    watch->begun = true;
    errno = watch->early_error;
    if (errno) tell_bound(watch, request->path);
    follow(watch);
  } else {
    reply_error(files, "watch", request->path);
  }
  if (watch->inotify >= 0) close(watch->inotify);
  watched_free(&watch->watched);
  free(watch);
}
