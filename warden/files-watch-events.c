/* What an event of the kernel means. The two halves of a move come as two events with one cookie; one whose other half lies outside stays alone. */
#include <string.h>

#include "files-watch.h"

static void start_over(struct watch *watch)
{
  watch_give_up(watch, 0);
  watch_tell(watch, EVENT_OVERFLOW, "", "");
  /* Folders that were made meanwhile are not known yet. */
  if (watch->recursive) watch_add(watch, &(struct watch_place){ .above = WATCHED_ROOT, .name = "", .path = "" });
}

static bool path_of(const struct watch *watch, int number, const char *name, char *path)
{
  return watched_path(&watch->watched, number, watch->only[0] ? "" : name, path);
}

static void conclude(struct watch *watch, struct departure *departure)
{
  char path[FILES_PATH_MOST + 1];
  if (path_of(watch, departure->number, departure->name, path)) watch_tell(watch, EVENT_REMOVED, path, "");
  const struct watched *folder = departure->is_folder ? watched_in(&watch->watched, departure->number, departure->name) : NULL;
  if (folder) watch_forget(watch, folder->number);
  departure->cookie = 0;
}

void watch_give_up(struct watch *watch, int64_t now_ms)
{
  for (int i = 0; i < MOVES_MOST; i++) {
    struct departure *departure = &watch->departures[i];
    if (departure->cookie && (now_ms == 0 || departure->until_ms <= now_ms)) conclude(watch, departure);
  }
}

static void depart(struct watch *watch, const struct inotify_event *event)
{
  struct departure *chosen = &watch->departures[0];
  for (int i = 0; i < MOVES_MOST && chosen->cookie; i++)
    if (!watch->departures[i].cookie || watch->departures[i].until_ms < chosen->until_ms) chosen = &watch->departures[i];
  if (chosen->cookie) conclude(watch, chosen);
  *chosen = (struct departure){ .cookie = event->cookie, .number = event->wd, .is_folder = event->mask & IN_ISDIR };
  chosen->until_ms = watch_now_ms() + MOVE_PATIENCE_MS;
  strncpy(chosen->name, event->name, sizeof chosen->name - 1);
}

static struct departure *departure_of(struct watch *watch, uint32_t cookie)
{
  for (int i = 0; i < MOVES_MOST; i++)
    if (cookie && watch->departures[i].cookie == cookie) return &watch->departures[i];
  return NULL;
}

/* Whatever happens to a name comes after what left it. */
static void settle_name(struct watch *watch, const struct inotify_event *event, const char *name)
{
  for (int i = 0; i < MOVES_MOST; i++) {
    struct departure *departure = &watch->departures[i];
    if (departure->cookie && departure->cookie != event->cookie && departure->number == event->wd && !strcmp(departure->name, name)) conclude(watch, departure);
  }
}

static void appear(struct watch *watch, const struct inotify_event *event, const char *path)
{
  watch_tell(watch, EVENT_CREATED, path, "");
  if (!(event->mask & IN_ISDIR) || !watch->recursive) return;
  watch_add(watch, &(struct watch_place){ .above = event->wd, .name = event->name, .path = path, .tell = true });
}

static void arrive(struct watch *watch, const struct inotify_event *event, const char *path)
{
  char from[FILES_PATH_MOST + 1];
  struct departure *departure = departure_of(watch, event->cookie);
  /* What it replaces is gone; were that a folder, it was empty. */
  const struct watched *replaced = event->mask & IN_ISDIR ? watched_in(&watch->watched, event->wd, event->name) : NULL;
  if (replaced) watch_forget(watch, replaced->number);
  if (!departure || !path_of(watch, departure->number, departure->name, from)) return appear(watch, event, path);
  departure->cookie = 0;
  watch_tell(watch, EVENT_RENAMED, from, path);
  const struct watched *folder = departure->is_folder ? watched_in(&watch->watched, departure->number, departure->name) : NULL;
  if (folder) watched_put(&watch->watched, folder->number, event->wd, event->name);
}

/* A watched folder is gone; all but the first is also told by the folder above. */
static void lose(struct watch *watch, const struct inotify_event *event)
{
  struct watched *folder = watched_find(&watch->watched, event->wd);
  if (!folder) return;
  bool is_first = folder->above == WATCHED_ROOT;
  if (is_first && event->mask & (IN_DELETE_SELF | IN_MOVE_SELF)) watch_tell(watch, EVENT_REMOVED, "", "");
  if (event->mask & IN_IGNORED) watched_drop(&watch->watched, folder);
}

void watch_take(struct watch *watch, const struct inotify_event *event)
{
  char path[FILES_PATH_MOST + 1];
  const char *name = event->len ? event->name : "";
  if (event->mask & IN_Q_OVERFLOW) return start_over(watch);
  if (event->mask & (IN_DELETE_SELF | IN_MOVE_SELF | IN_IGNORED | IN_UNMOUNT)) return lose(watch, event);
  /* A single file that goes to another name, or comes from one, is to its watcher gone, or there. */
  if (watch->only[0] && strcmp(name, watch->only)) return;
  settle_name(watch, event, name);
  if (!path_of(watch, event->wd, name, path)) return;
  if (event->mask & IN_MOVED_FROM && !watch->only[0]) return depart(watch, event);
  if (event->mask & IN_MOVED_TO && !watch->only[0]) return arrive(watch, event, path);
  if (event->mask & (IN_CREATE | IN_MOVED_TO)) return appear(watch, event, path);
  if (event->mask & (IN_DELETE | IN_MOVED_FROM)) return watch_tell(watch, EVENT_REMOVED, path, "");
  /* A folder's own attributes are told by the folder above. */
  if (event->mask & (IN_MODIFY | IN_CLOSE_WRITE | IN_ATTRIB) && *name) watch_tell(watch, EVENT_CHANGED, path, "");
}
