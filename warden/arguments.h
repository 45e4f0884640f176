/* The start-up arguments of PROTOCOL.md. */
#ifndef GLOVEBOX_ARGUMENTS_H
#define GLOVEBOX_ARGUMENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "warden.h"

enum { ARGUMENTS_PATHS_MOST = 256, ARGUMENTS_INDEX_MOST = 9999 };

struct writable {
  const char *path;
  uid_t uid;
  gid_t gid;
  mode_t mode;
};

/* Of a place on a disk that was there before. */
enum { ARGUMENTS_PATH_LONGEST = 256 };

struct paths {
  const char *list[ARGUMENTS_PATHS_MOST];
  size_t count;
};

struct join_argument {
  int fd;
  const char *file; /* NULL: `fd` is the file itself */
};

/* What the driver had open when it checked a source, and where that should be. */
struct recognition {
  int fd;
  const char *path;
};

/* A folder to be covered with a writable overlay of itself, and the name of what is written there. */
struct overlay {
  const char *from;
  unsigned index;
};

struct place {
  const char *from, *to;
  bool readonly, noexec;
};

struct binding {
  const char *from, *to;
};

struct arguments {
  const char *disk_bytes, *disk_inodes; /* NULL: no disk */
  const char *disk_at; /* NULL: it is still to be made */
  struct writable writables[ARGUMENTS_PATHS_MOST];
  size_t writable_count;
  bool noexec;
  struct writable folders[ARGUMENTS_PATHS_MOST];
  size_t folder_count;
  struct recognition recognitions[ARGUMENTS_PATHS_MOST];
  size_t recognition_count;
  struct overlay overlays[ARGUMENTS_PATHS_MOST];
  size_t overlay_count;
  const char *layers; /* NULL: they are on the disk */
  struct place places[ARGUMENTS_PATHS_MOST];
  size_t place_count;
  struct binding bindings[ARGUMENTS_PATHS_MOST];
  size_t binding_count;
  bool pts;
  struct paths veils, masks, readonlys, detaches, releases, removals;
  bool own_proc;
  struct join_argument joins[WARDEN_JOINS_MOST];
  size_t join_count;
  int enters[WARDEN_JOINS_MOST];
  size_t enter_count;
  bool subreaper;
  const char *guests_most; /* NULL: the driver bounds them from outside */
  bool becomes; /* another id than it was started with */
  uid_t own_uid;
  gid_t own_gid;
  bool tells, hides;
  struct doors_plan doors; /* without ports: those come later */
  bool cradle; /* with these ids */
  uid_t cradle_uid;
  gid_t cradle_gid;
};

/* Dies naming the argument that is wrong. The texts stay those of argv. */
void arguments_parse(struct arguments *arguments, char **argv);
/* Overwrites argv and the environment, which /proc shows to every process of the cell. */
void arguments_wipe(char **argv, char **envp);

#endif
