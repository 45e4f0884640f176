/*
 * What makes liners: the cradle, and a zygote. Both are asked by the warden on a socket of their own, one datagram for each program, with its streams and its link;
 * the answer is the number of the liner's first process, as the cell sees it. Whoever is made is the warden's child, not theirs.
 */
#ifndef GLOVEBOX_BROOD_H
#define GLOVEBOX_BROOD_H

#include <stdbool.h>
#include <stdint.h>

#include "frame.h"
#include "keeper.h"
#include "lining.h"
#include "warden.h"

enum brood_kind { BROOD_SETUP = 1, BROOD_LINER = 2, BROOD_ZYGOTE = 3 };

/* Longer payloads come in a file, because no datagram has room for the longest. */
enum { BROOD_INLINE_MOST = 32768, BROOD_FDS_MOST = 8 };

/* Comes with the descriptors of the joins, and is followed by the filter. */
struct brood_setup {
  uint32_t kind;
  uint32_t join_count;
  char join_files[WARDEN_JOINS_MOST][WARDEN_JOIN_NAME_MOST + 1];
  struct rlimit files;
  struct lining lining;
  uint32_t filter_length;
};

/* Comes with the link, a file with the payload when that is `spilled`, the streams of these bits, and for a zygote its socket and its library. */
struct brood_order {
  uint32_t kind;
  uint32_t streams;
  uint32_t spilled;
  uint32_t length;
  struct doors_plan doors; /* of the liner */
};

enum { BROOD_MESSAGE_MOST = sizeof(struct brood_setup) + FRAME_FILTER_MOST + 4096 };

struct brood_answer {
  int32_t pid; /* 0: none, for this reason */
  int32_t error;
};

struct brood_message {
  union {
    uint32_t kind;
    struct brood_setup setup;
    struct brood_order order;
    uint8_t bytes[BROOD_MESSAGE_MOST];
  };
  size_t length;
  int fds[BROOD_FDS_MOST];
  size_t fd_count;
};

struct brood {
  int socket;
  bool ready; /* it knows the lining and the filter */
  struct warden warden; /* as much of the warden's as programs need */
  struct lining lining;
  struct brood_message message;
  /* NULL where no zygote is made. Becomes one. */
  void (*become_zygote)(struct brood *brood, struct plan *plan);
  /* NULL where the first process of a liner is a copy of its maker. */
  struct lean *lean;
  int (*hatch)(struct brood *brood, struct plan *plan);
};

/* NULL with errno. */
struct brood *brood_make(int socket);
/* To the warden: the number of what it asked for, or -1 with errno. */
void brood_answer(int socket, pid_t pid);
/* Says that it is about to serve, by an answer to nothing. */
void brood_greet(int socket);
/* Serves until the warden is gone, which ends it. Returns only in the program of a liner, with its end of the status: `plan` and `start` are its own. */
int brood_serve(struct brood *brood, struct plan *plan, struct start *start);
/* The program's number for whoever is to hear of it, in a child of the caller's parent; 0 in that child. */
pid_t brood_clone(int namespaces);

#endif
