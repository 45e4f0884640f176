/* The parts of WATCH. */
#ifndef GLOVEBOX_FILES_WATCH_H
#define GLOVEBOX_FILES_WATCH_H

#include <sys/inotify.h>

#include "files-frames.h"
#include "files-watched.h"

enum { MOVES_MOST = 16, MOVE_PATIENCE_MS = 30 };

enum event_kind { EVENT_CREATED = 1, EVENT_CHANGED, EVENT_REMOVED, EVENT_RENAMED, EVENT_OVERFLOW };

/* Something has left a folder; where it went may follow. */
struct departure {
  uint32_t cookie; /* 0: none */
  int number;      /* of the folder it left */
  bool is_folder;
  int64_t until_ms;
  char name[256];
};

struct watch {
  struct files *files;
  const struct request *request;
  bool recursive;
  int inotify;
  char folder[FILES_PATH_MOST + 1]; /* what is watched: the path asked for, or the folder it lies in */
  char only[FILES_PATH_MOST + 1];   /* in it, where that is no folder; empty otherwise */
  struct watched_list watched;
  struct departure departures[MOVES_MOST];
  bool begun;
  int early_error; /* why not everything could be watched from the beginning */
  bool told_bound; /* that not everything can be watched */
  bool has_last;                  /* a single file's own path is empty */
  char last[FILES_PATH_MOST + 1]; /* changed, in what is gathered now */
};

/* Watches a folder and, when it is asked for, all beneath; `tell` tells what is there as created. `path` is below watch->folder. */
struct watch_place {
  int above;
  const char *name, *path;
  bool tell;
};

bool watch_add(struct watch *watch, const struct watch_place *place);
void watch_forget(struct watch *watch, int number);
void watch_tell(struct watch *watch, uint32_t kind, const char *path, const char *to);
void watch_take(struct watch *watch, const struct inotify_event *event);
/* Those whose other half does not come; `now_ms` 0 for all. */
void watch_give_up(struct watch *watch, int64_t now_ms);
int64_t watch_now_ms(void);

#endif
