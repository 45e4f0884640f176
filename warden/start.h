/* The payload of START, taken apart. Pure but for one allocation. */
#ifndef GLOVEBOX_START_H
#define GLOVEBOX_START_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { START_STRINGS_MOST = 4096, START_STRING_MOST = 131071, START_RLIMITS_MOST = 16, START_GROUP_MOST = 255, START_SIDE_MOST = 4096 };

/* What a program is told with its release: what fits a single datagram wherever we run. */
enum { START_TOLD_MOST = 32768 };

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
  bool aside;    /* what it is fed is its descriptor 3, and its descriptor 4 is a third stream */
  bool later;    /* folder, arguments and environment come with its release */
  bool liner;    /* in namespaces and with a disk of its own */
  bool forked;   /* and made by the zygote, which it goes on as */
  bool zygote;   /* it is the one that such programs are made by */
  uint64_t disk_bytes, disk_inodes; /* of a liner */
  const uint8_t *library; /* what a zygote loads; part of `raw` */
  uint32_t library_length;
  const uint8_t *raw; /* the payload, which belongs to whoever had it parsed */
  size_t raw_length;
  uint16_t rows, columns;
  uint32_t uid, gid;
  uint64_t capabilities;
  uint32_t rlimit_count;
  struct start_rlimit rlimits[START_RLIMITS_MOST];
  char *cwd;
  char **argv; /* both end with NULL, as execve wants them */
  char **envp;
  char *group; /* one path component, or empty */
  void *memory;
};

/* NULL when the payload is well formed (then start_free it); else what is wrong with it. */
const char *start_parse(const uint8_t *bytes, size_t length, struct start *start);
/* The same for the payload of RELEASE: cwd, argv and envp of a START that left them for later, and nothing else, is set. */
const char *start_tell(const uint8_t *bytes, size_t length, struct start *start);
void start_free(struct start *start);
/* The same, and nothing of its texts is left in memory. */
void start_wipe(struct start *start);

#endif
