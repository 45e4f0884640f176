/* What the warden knows of one run: one keeper, one program, and three pipes, or four with an aside, or a terminal. */
#ifndef GLOVEBOX_RUN_H
#define GLOVEBOX_RUN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* stdout, stderr and the aside: the tap of a stream has the stream's number less one. */
enum { RUN_TAPS = 3, STREAM_ASIDE = 3 };

/* Where the program's output comes from: a pipe, or the terminal. */
struct tap {
  int fd; /* -1: the stream has ended */
  bool terminal; /* what waits in it cannot be counted */
  uint32_t credit;
  bool widened;     /* more room was asked for than pipes begin with */
  bool wide;        /* it is a pipe, and has it */
  bool bulky;       /* there was much in it the last time */
  bool draining;    /* the program has exited: only `remaining` more bytes are its own */
  size_t remaining;
};

/* Where the program's input goes, and what waits to go in. */
struct feed {
  int fd;         /* -1: closed, or never fed */
  uint8_t *bytes; /* a ring in `room` bytes, there while it holds something, or may soon */
  uint32_t room; /* the window */
  uint32_t span; /* how much of it is used in turn */
  size_t head, length;
  uint32_t credit; /* what the engine may still send */
  uint32_t owed;   /* handed on, and not given back yet */
  bool ending;     /* close once empty */
  bool leaving;    /* its program was found to be on its way out */
  bool widened;    /* more room was asked for than pipes begin with */
  bool wide;       /* it is a pipe, and has it */
  uint8_t last;    /* the byte that was handed on last */
};

struct doors;

/* What only a connection has; see connection.c. */
struct dial {
  int fd; /* while it is on the way; -1 after */
  uint16_t port;
  bool second; /* the second of the two addresses is tried */
  int64_t give_up_ms;
  uint32_t error; /* the first that went wrong */
};

struct ending {
  uint32_t kind, code;
  uint64_t user_us, system_us, peak_bytes, read_bytes, written_bytes;
};

/* In the order of a run's life. GATED and RELEASED are left out by a run that asked for no gate. */
enum run_phase { RUN_STARTING, RUN_GATED, RUN_RELEASED, RUN_STARTED, RUN_EXITED, RUN_OVER };

/* Where a kill stands; see kill.c. */
struct doom {
  bool wanted;
  bool released; /* no process was left, so the keeper was let go on to reap and end */
  unsigned clean_passes;
  unsigned live_seen;
  int64_t released_at_ms;
  uint32_t answers_owed;
};

struct run {
  uint32_t id;
  enum run_phase phase;
  bool connection; /* neither keeper nor program, but a socket */
  bool accepted; /* and it was a program that made it */
  struct dial dial;
  bool terminal; /* its stdio is one */
  bool worker; /* it serves files */
  bool aside; /* its input is no stdin, and it has a third stream */
  bool later; /* what it is to become comes with its release */
  struct doors *doors; /* of a liner; NULL: none */
  bool liner;  /* its keeper is the first process of its liner, and its end is the end of all */
  bool zygote; /* it has no keeper but itself */
  bool gate; /* asked for: until its release the program does not run */
  pid_t keeper; /* 0 once reaped: until then its number cannot mean another process */
  int link;     /* datagrams from the keeper; -1 once the keeper is reaped */
  pid_t program; /* 0 until its keeper told it */
  uint32_t window; /* of each tap */
  struct tap taps[RUN_TAPS];
  struct feed feed;
  struct ending ending;
  struct doom doom;
  bool lingers; /* its keeper is gone, and processes of it are not: only where runs are known by marks */
  unsigned marked_seen; /* how many bore its mark when somebody looked last */
  bool orphaned; /* its keeper died before its processes: they are swept up at the warden */
};

#endif
