/* The state of the one warden, owned by main and handed to every part. */
#ifndef GLOVEBOX_WARDEN_H
#define GLOVEBOX_WARDEN_H

#include <linux/filter.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "brake.h"
#include "doors.h"
#include "queue.h"
#include "rules.h"
#include "run.h"
#include "used-ids.h"

enum { WARDEN_RUNS_MOST = 1024, WARDEN_JOINS_MOST = 8, WARDEN_JOIN_NAME_MOST = 255, WARDEN_FILES_MOST = 8192 };

/* What guests may have of the warden, beside the engine's runs; its own numbers begin where the engine's end. */
enum { WARDEN_ACCEPTED_MOST = 256, WARDEN_WIDE_MOST = 32, WARDEN_QUESTIONS_MOST = 64 };
#define WARDEN_OWN_FIRST UINT32_C(0x80000000)

/* The rest of one STDIN, on its way past the inbox; see passing.c. */
struct passing {
  uint32_t run;
  size_t left;      /* 0: there is none */
  bool full;        /* nothing fits into the pipe now */
  bool copying;     /* and nothing has for a while, or nothing ever will */
  bool useless;     /* the channel gives nothing away uncopied */
  int64_t until_ms; /* how long it may be so; 0: it was not yet */
  unsigned sparing; /* of so many frames no more is read than needed: what follows may pass too */
};

struct inbox {
  uint8_t *bytes;
  size_t room, head, tail;
  struct passing passing;
};

/* Where each program writes itself before it drops anything. */
struct join {
  int fd;
  char file[WARDEN_JOIN_NAME_MOST + 1]; /* empty: `fd` is the file; else `fd` is a folder, and the file lies in the group below it */
};

/* A process that makes liners when it is asked to. */
struct mother {
  pid_t pid;  /* 0: there is none */
  int socket; /* only while there is one */
  bool serves; /* it has said so: until then nothing may be asked of it, because whoever asks waits */
};

/* Who asked, where, and at which address. */
struct question {
  uint32_t id; /* 0: the place is free */
  const struct doors *doors;
  int fd;
  union {
    struct sockaddr any;
    struct sockaddr_in four;
    struct sockaddr_in6 six;
  } peer;
  socklen_t peer_length;
  struct in6_pktinfo six;
  struct in_pktinfo four;
};

struct lining;
struct told;

/* Who belongs to a run, where no keeper catches its orphans; see kin.c. */
struct kin {
  bool marked; /* runs are known by marks */
  int guests; /* the door of the group that counts all guests; -1: there is none */
  struct brake brake;
};

struct warden {
  bool subreaper; /* not pid 1: no boundary */
  struct join joins[WARDEN_JOINS_MOST + 1]; /* and one of its own */
  size_t join_count;
  struct kin kin;
  struct told *told; /* what this kernel says, for the engine; NULL: nobody wants to know */
  struct lining *lining; /* what liners are made of; NULL: there are none */
  struct mother cradle, zygote;
  bool shares_id; /* with its guests */
  bool plain_started; /* a program outside of every liner ran, or may have */
  int layers; /* the folder with a folder for each overlay, closed on exec and never a guest's; -1: none */
  struct rlimit files; /* RLIMIT_NOFILE as it was: programs get it back */
  int signals;         /* signalfd */
  struct inbox inbox;
  struct queue queue;
  bool configured, started_any;
  struct sock_filter *filter;
  size_t filter_length;
  struct rules rules;
  struct run *runs[WARDEN_RUNS_MOST + WARDEN_ACCEPTED_MOST];
  size_t run_count;
  size_t accepted_count; /* of these, how many are guests' connections */
  size_t wide_count; /* and of those, how many have the wide window */
  struct doors_plan doors_plan;
  struct doors doors; /* the cell's own */
  uint32_t own_last; /* the last of the warden's own numbers that was given */
  struct question questions[WARDEN_QUESTIONS_MOST];
  size_t question_count;
  int64_t doors_shut_until_ms; /* 0: they are not */
  size_t spans; /* of all the rings */
  struct used_ids used;
  bool strays;               /* a keeper was lost: its processes come to the warden and must die */
  unsigned stray_clean_passes;
  int64_t next_pass_ms;      /* 0: no kill is under way */
  int64_t pass_pause_ms;
  bool ending;               /* the engine is gone or said CLOSE */
  const char *fatal;         /* why the cell ends, when it is the engine's fault */
};

#endif
