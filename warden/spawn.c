#include "spawn.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cradle.h"
#include "fds.h"
#include "keeper.h"
#include "kin.h"
#include "report.h"
#include "terminal.h"
#include "wire.h"

void spawn_refuse(struct warden *warden, uint32_t id, const struct failure *failure)
{
  uint8_t payload[8 + FRAME_TEXT_MOST];
  size_t length = strnlen(failure->text, sizeof failure->text);
  wire_put_u32(payload, failure->stage);
  wire_put_u32(payload + 4, failure->error);
  memcpy(payload + 8, failure->text, length);
  queue_frame(&warden->queue, &(struct frame){ .type = FRAME_FAILED, .run = id, .length = (uint32_t)(8 + length), .payload = payload });
}

static void refuse(struct warden *warden, uint32_t id, const char *object)
{
  struct failure failure = { .stage = STAGE_SET_UP };
  failure_note(&failure, "make", object);
  spawn_refuse(warden, id, &failure);
}

static void enlist(struct warden *warden, struct run *run, const struct ends *ends)
{
  run->link = ends->link[ENDS_OURS];
  for (int i = 0; i < RUN_TAPS; i++) run->taps[i] = (struct tap){ .fd = ends->streams[i + 1][ENDS_OURS], .terminal = run->terminal, .credit = FRAME_WINDOW };
  run->window = FRAME_WINDOW;
  run->feed = (struct feed){ .fd = ends->streams[0][ENDS_OURS], .credit = FRAME_WINDOW, .room = FRAME_WINDOW, .last = '\n' };
  warden->runs[warden->run_count++] = run;
}

/* 0 when it failed, with errno and in `object` what could not be made. */
static pid_t make_keeper(struct warden *warden, struct start *start, struct ends *ends, const char **object)
{
  *object = start->terminal ? "one more terminal" : "pipes";
  if (ends_open(warden, ends, start) < 0 || !fds_leave_room(ends->link[ENDS_OURS]) || !fds_leave_room(ends->link[ENDS_THEIRS])) return 0;
  *object = "keeper";
  bool lined = start->liner || start->zygote;
  warden->plain_started = warden->plain_started || !(lined || start->worker);
  pid_t keeper = lined ? cradle_order(warden, start, ends, object) : keeper_fork(&(struct plan){ .warden = warden, .start = start, .mark = ends->mark }, ends);
  if (keeper <= 0) return 0;
  ends_close_side(ends, ENDS_THEIRS);
  return keeper;
}

void spawn_run(struct warden *warden, uint32_t id, struct start *start)
{
  errno = EAGAIN;
  if (warden->run_count - warden->accepted_count == WARDEN_RUNS_MOST) return refuse(warden, id, "one more run");
  if (start->terminal && !terminal_is_free(warden)) return refuse(warden, id, "one more terminal");
  struct ends ends = ENDS_NONE;
  struct run *run = calloc(1, sizeof *run);
  if (!run) return refuse(warden, id, "run");
  run->id = id;
  run->gate = start->gate;
  run->later = start->later;
  run->aside = start->aside;
  run->terminal = start->terminal;
  run->worker = start->worker;
  run->liner = start->liner;
  run->zygote = start->zygote;
  const char *object = NULL;
  ends.mark = kin_mark(warden, id);
  run->keeper = make_keeper(warden, start, &ends, &object);
  if (run->keeper) return enlist(warden, run, &ends);
  refuse(warden, id, object);
  ends_close_side(&ends, ENDS_OURS);
  ends_close_side(&ends, ENDS_THEIRS);
  free(run);
}
