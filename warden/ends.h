/* What joins the warden to one run: its streams and the link to its keeper, each with a side of ours and one of theirs. */
#ifndef GLOVEBOX_ENDS_H
#define GLOVEBOX_ENDS_H

#include "start.h"

enum { ENDS_OURS = 0, ENDS_THEIRS = 1 };

/* The input has the number 0, an output that of its stream. */
enum { ENDS_ASIDE = 3, ENDS_STREAMS = 4 };

/* [stream][side] and the link; -1 where there is none. */
struct ends {
  int streams[ENDS_STREAMS][2];
  int link[2];
  uint32_t mark; /* of the run's processes; 0: none */
};

#define ENDS_NONE ((struct ends){ { { -1, -1 }, { -1, -1 }, { -1, -1 }, { -1, -1 } }, { -1, -1 }, 0 })

struct warden;
/* 0, or -1 with errno; what was opened by then is in `ends`. Begins with ENDS_NONE. */
int ends_open(const struct warden *warden, struct ends *ends, const struct start *start);
void ends_close_side(const struct ends *ends, int side);

#endif
