/* The payload of START, taken apart. Pure but for one allocation. */
#ifndef GLOVEBOX_START_H
#define GLOVEBOX_START_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { START_STRINGS_MOST = 4096, START_STRING_MOST = 131071, START_RLIMITS_MOST = 16, START_GROUP_MOST = 255, START_SIDE_MOST = 4096 };

struct start_rlimit {
  uint32_t resource;
  uint64_t soft, hard;
};

struct start {
  bool stdin_fed;
  bool gate;     /* wait before execve until the engine says RELEASE */
  bool terminal; /* stdio is a terminal of `rows` and `columns` */
  bool worker;   /* no execve: the process serves files itself */
  bool layers;   /* and holds the folder of layers */
  uint16_t rows, columns;
  uint32_t uid, gid;
  uint64_t capabilities;
  uint32_t rlimit_count;
  struct start_rlimit rlimits[START_RLIMITS_MOST];
  char *cwd;
  char **argv; /* both end with NULL, as execve wants them */
  char **envp;
  char *group; /* one path component, or empty */
  const uint8_t *bytes; /* the payload itself, not a copy */
  size_t length;
  void *memory;
};

/* NULL when the payload is well formed (then start_free it); else what is wrong with it. */
const char *start_parse(const uint8_t *bytes, size_t length, struct start *start);
void start_free(struct start *start);

#endif
