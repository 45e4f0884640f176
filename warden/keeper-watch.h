/* What a keeper does once its program was forked. */
#ifndef GLOVEBOX_KEEPER_WATCH_H
#define GLOVEBOX_KEEPER_WATCH_H

#include <stdbool.h>
#include <sys/types.h>

struct watch {
  int link;   /* to the warden */
  int status; /* the keeper's end of what joins it to the program until that runs */
  pid_t program;
  bool gate;  /* the program waits at its gate */
  bool liner; /* the keeper is the first process of the program's liner */
};

/* Tells the warden how the program fares and how it ended, and reaps what it leaves. */
_Noreturn void keeper_watch(const struct watch *watch);

#endif
