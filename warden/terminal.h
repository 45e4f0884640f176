/* Terminals: a run whose stdio is the far end of one, while the warden holds the near end as it holds pipes. */
#ifndef GLOVEBOX_TERMINAL_H
#define GLOVEBOX_TERMINAL_H

#include "start.h"
#include "warden.h"

enum {
  TERMINALS_MOST = 64,
  /* More than the kernel ever holds of one terminal's output. */
  TERMINAL_HELD_MOST = 65536,
};

/* The two ends of a new terminal: near, which does not block, and far. */
struct terminal {
  int near, far;
};

/* Belongs to the file-system ids of the caller. 0, or -1 with errno and nothing open. */
int terminal_open(const struct warden *warden, const struct start *start, struct terminal *terminal);
/* The programs at it are told by a signal. */
void terminal_resize(int near, const uint8_t *size);
/* Types what stands for the end of input. False when that must be tried again later. */
bool terminal_type_end(const struct feed *feed);
/* Whether one more may be opened. */
bool terminal_is_free(const struct warden *warden);

#endif
