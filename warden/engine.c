#include "engine.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "connection.h"
#include "cradle.h"
#include "feed.h"
#include "guests.h"
#include "kill.h"
#include "pages.h"
#include "passing.h"
#include "runs.h"
#include "spawn.h"
#include "terminal.h"
#include "wire.h"

enum { INBOX_USUAL = 2 * FRAME_CHUNK, PART_LEAST = 16384 };

static const char *configure(struct warden *warden, const struct frame *frame)
{
  if (warden->configured) return "a second CONFIGURE";
  if (warden->started_any) return "CONFIGURE after START";
  warden->configured = true;
  if (!frame->length) return NULL;
  warden->filter = malloc(frame->length);
  if (!warden->filter) return "no memory for the filter";
  memcpy(warden->filter, frame->payload, frame->length);
  warden->filter_length = frame->length / sizeof *warden->filter;
  cradle_configure(warden);
  return NULL;
}

static const char *take_rules(struct warden *warden, const struct frame *frame)
{
  if (warden->rules.given) return "a second RULES";
  if (warden->started_any) return "RULES after START";
  return rules_load(&warden->rules, frame->payload, frame->length);
}

/* Of the warden's numbers, which it gives one after the other. */
static bool is_own(uint32_t id)
{
  return id >= WARDEN_OWN_FIRST;
}

static bool was_begun(const struct warden *warden, uint32_t id)
{
  return is_own(id) ? id <= warden->own_last : used_ids_has(&warden->used, id);
}

static const char *begin(struct warden *warden, const struct frame *frame)
{
  if (is_own(frame->run) || used_ids_has(&warden->used, frame->run)) return "START with a used run id";
  struct start start;
  const char *why = start_parse(frame->payload, frame->length, &start);
  if (why) return why;
  warden->started_any = true;
  if (used_ids_add(&warden->used, frame->run)) spawn_run(warden, frame->run, &start);
  else why = "no memory for the run id";
  start_free(&start);
  return why;
}

static const char *connect_to(struct warden *warden, const struct frame *frame)
{
  if (is_own(frame->run) || used_ids_has(&warden->used, frame->run)) return "CONNECT with a used run id";
  if (!used_ids_add(&warden->used, frame->run)) return "no memory for the run id";
  connection_begin(warden, frame->run, wire_u16(frame->payload));
  return NULL;
}

static const char *add_credit(struct run *run, const struct frame *frame)
{
  struct tap *tap = &run->taps[frame->stream - 1];
  uint32_t bytes = wire_u32(frame->payload);
  if (frame->stream == STREAM_ASIDE && !run->aside) return "credit for an aside that the run does not have";
  if (bytes > run->window - tap->credit) return "credit beyond the window";
  tap->credit += bytes;
  return NULL;
}

/* The program takes it apart once more, itself. */
static const char *fault_in_release(const struct run *run, const struct frame *frame)
{
  if (!run->later) return frame->length ? "RELEASE of a program that was told what to become" : NULL;
  struct start told = { 0 };
  const char *why = start_tell(frame->payload, frame->length, &told);
  start_free(&told);
  return why;
}

static const char *release(struct run *run, const struct frame *frame)
{
  const char *why = fault_in_release(run, frame);
  if (why) return why;
  /* What is to die must not run first. */
  if (run->doom.wanted) return NULL;
  if (run->phase != RUN_GATED) return "RELEASE for a run that is not at its gate";
  run->phase = RUN_RELEASED;
  /* Others of its id may have stopped it at its gate. Before it is let go: afterwards it may have stopped itself, which is its own affair. Its number is its own: see below. */
  kill(run->program, SIGCONT);
  if (run->later) send(run->link, frame->payload, frame->length, MSG_NOSIGNAL);
  else send(run->link, "", 1, MSG_NOSIGNAL);
  return NULL;
}

static const char *resize(struct run *run, const struct frame *frame)
{
  if (!run->terminal) return "RESIZE for a run without a terminal";
  int near = run->taps[0].fd >= 0 ? run->taps[0].fd : run->feed.fd;
  if (near >= 0) terminal_resize(near, frame->payload);
  return NULL;
}

static const char *act_on_run(struct warden *warden, struct run *run, const struct frame *frame)
{
  if (frame->type == FRAME_KILL) {
    if (run->connection) connection_abort(warden, run);
    kill_run(warden, run);
    return NULL;
  }
  if (run->phase == RUN_OVER) return NULL;
  if (run->connection && frame->type == FRAME_SIGNAL) return "SIGNAL for a connection";
  if (connection_is_dialing(run) && frame->type == FRAME_STDIN) return "STDIN for a connection that is not made";
  if (frame->type == FRAME_STDIN) return feed_take(warden, run, frame);
  if (frame->type == FRAME_RELEASE) return release(run, frame);
  if (frame->type == FRAME_RESIZE) return resize(run, frame);
  if (frame->type == FRAME_CREDIT) return add_credit(run, frame);
  /* Its number is its own: the keeper lets a dead program go only after the warden has taken note. */
  if (frame->type == FRAME_SIGNAL && run->phase == RUN_STARTED) kill(-run->program, (int)wire_u32(frame->payload));
  return NULL;
}

static const char *carry_out(struct warden *warden, const struct frame *frame)
{
  if (frame->type == FRAME_CONFIGURE) return configure(warden, frame);
  if (frame->type == FRAME_RULES) return take_rules(warden, frame);
  if (frame->type == FRAME_START) return begin(warden, frame);
  if (frame->type == FRAME_CONNECT) return connect_to(warden, frame);
  if (frame->type == FRAME_LISTEN) return guests_listen(warden, frame);
  if (frame->type == FRAME_ANSWER) return guests_answer(warden, frame);
  if (frame->type == FRAME_CLOSE) {
    warden->ending = true;
    return NULL;
  }
  struct run *run = runs_find(warden, frame->run);
  if (run) return act_on_run(warden, run, frame);
  if (!was_begun(warden, frame->run)) return "a frame for a run that was never started";
  if (frame->type == FRAME_KILL) queue_frame(&warden->queue, &(struct frame){ .type = FRAME_GONE, .run = frame->run });
  return NULL;
}

/* What is here of a long STDIN for a connection goes on; what is not is left as a frame of its own, and nothing of it needs to be moved to make room. */
static void hand_on_part(struct warden *warden, const struct frame *frame)
{
  struct inbox *inbox = &warden->inbox;
  struct frame here = *frame, rest = *frame;
  const struct run *run = frame->type == FRAME_STDIN ? runs_find(warden, frame->run) : NULL;
  here.length = (uint32_t)(inbox->tail - inbox->head - FRAME_HEADER);
  rest.length -= here.length;
  if (!run || !run->connection || here.length < PART_LEAST || frame->length > run->feed.credit) return;
  warden->fatal = carry_out(warden, &here);
  inbox->head = inbox->tail - FRAME_HEADER;
  frame_put_header(inbox->bytes + inbox->head, &rest);
}

bool engine_is_heard(const struct warden *warden)
{
  return queue_length(&warden->queue) < QUEUE_INPUT_PAUSE;
}

bool engine_has_work(const struct warden *warden)
{
  const struct inbox *inbox = &warden->inbox;
  struct frame frame;
  return engine_is_heard(warden) && frame_parse(inbox->bytes + inbox->head, inbox->tail - inbox->head, &frame) != FRAME_PARTIAL;
}

void engine_work(struct warden *warden)
{
  struct inbox *inbox = &warden->inbox;
  while (!warden->ending && !warden->fatal && engine_is_heard(warden)) {
    struct frame frame = { 0 };
    enum frame_result result = frame_parse(inbox->bytes + inbox->head, inbox->tail - inbox->head, &frame);
    if (result == FRAME_PARTIAL) {
      passing_begin(warden, &frame);
      if (!passing_is_under_way(warden)) hand_on_part(warden, &frame);
      return;
    }
    if (inbox->passing.sparing) inbox->passing.sparing--;
    warden->fatal = result == FRAME_MALFORMED ? frame.why : carry_out(warden, &frame);
    inbox->head += FRAME_HEADER + (result == FRAME_WHOLE ? frame.length : 0);
  }
}

/* Room for the whole of the frame that has begun; back to the usual size once a large START is done. */
static bool make_room(struct inbox *inbox)
{
  size_t held = inbox->tail - inbox->head;
  size_t needed = held ? frame_needs(inbox->bytes + inbox->head, held) : FRAME_HEADER;
  size_t room = needed > INBOX_USUAL ? needed : INBOX_USUAL;
  if (held && inbox->head) memmove(inbox->bytes, inbox->bytes + inbox->head, held);
  inbox->head = 0;
  inbox->tail = held;
  if (room == inbox->room || held > room) return true;
  uint8_t *bytes = pages_resize(inbox->bytes, inbox->room, room);
  if (!bytes) return false;
  inbox->bytes = bytes;
  inbox->room = room;
  return true;
}

static size_t most_to_read(const struct inbox *inbox)
{
  size_t held = inbox->tail - inbox->head, needed = frame_needs(inbox->bytes + inbox->head, held);
  return inbox->passing.sparing && needed > held ? needed - held : inbox->room - inbox->tail;
}

void engine_hear(struct warden *warden)
{
  struct inbox *inbox = &warden->inbox;
  if (passing_is_under_way(warden)) return passing_hear(warden);
  if (!make_room(inbox)) {
    warden->fatal = "no memory for a frame";
    return;
  }
  if (inbox->tail < inbox->room) {
    ssize_t got = read(0, inbox->bytes + inbox->tail, most_to_read(inbox));
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) return;
    if (got <= 0) {
      warden->ending = true;
      return;
    }
    inbox->tail += (size_t)got;
  }
  engine_work(warden);
}
