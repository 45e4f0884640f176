#include "runs.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "connection.h"
#include "cradle.h"
#include "doors-handover.h"
#include "feed.h"
#include "guests.h"
#include "kill.h"
#include "kin.h"
#include "report.h"
#include "spawn.h"
#include "tap.h"
#include "told.h"
#include "wire.h"

enum { ENDING_LOST = 2 };

_Static_assert(sizeof(struct doors) > sizeof(struct report) && sizeof(struct report) > sizeof(struct failure), "datagrams are told apart by their length");

struct run *runs_find(const struct warden *warden, uint32_t id)
{
  for (size_t i = 0; i < warden->run_count; i++)
    if (warden->runs[i]->id == id) return warden->runs[i];
  return NULL;
}

static void begin_exit(struct warden *warden, struct run *run, const struct ending *ending)
{
  run->ending = *ending;
  run->phase = RUN_EXITED;
  feed_close(warden, run);
  for (int i = 0; i < RUN_TAPS; i++) tap_drain(&run->taps[i]);
}

/* The program never ran: its streams have neither bytes nor ends. */
static void drop_streams(struct warden *warden, struct run *run)
{
  run->phase = RUN_OVER;
  feed_close(warden, run);
  for (int i = 0; i < RUN_TAPS; i++) {
    if (run->taps[i].fd >= 0) close(run->taps[i].fd);
    run->taps[i].fd = -1;
  }
}

static void say_exited(struct warden *warden, struct run *run)
{
  uint8_t payload[48];
  wire_put_u32(payload, run->ending.kind);
  wire_put_u32(payload + 4, run->ending.code);
  wire_put_u64(payload + 8, run->ending.user_us);
  wire_put_u64(payload + 16, run->ending.system_us);
  wire_put_u64(payload + 24, run->ending.peak_bytes);
  wire_put_u64(payload + 32, run->ending.read_bytes);
  wire_put_u64(payload + 40, run->ending.written_bytes);
  queue_frame(&warden->queue, &(struct frame){ .type = FRAME_EXITED, .run = run->id, .length = sizeof payload, .payload = payload });
  run->phase = RUN_OVER;
}

static void fail_start(struct warden *warden, struct run *run, const struct failure *failure)
{
  spawn_refuse(warden, run->id, failure);
  drop_streams(warden, run);
}

static void end_before_start(struct warden *warden, struct run *run, const struct ending *ending)
{
  run->ending = *ending;
  say_exited(warden, run);
  drop_streams(warden, run);
}

static void say_started(struct warden *warden, struct run *run)
{
  uint8_t pid[4];
  run->phase = RUN_STARTED;
  wire_put_u32(pid, (uint32_t)run->program);
  queue_frame(&warden->queue, &(struct frame){ .type = FRAME_STARTED, .run = run->id, .length = sizeof pid, .payload = pid });
  /* A terminal is one stream. */
  if (run->terminal) queue_frame(&warden->queue, &(struct frame){ .type = FRAME_OUTPUT, .stream = 2, .run = run->id });
}

static void say_gated(struct warden *warden, struct run *run)
{
  uint8_t payload[4 + TOLD_OF_PROGRAM_MOST];
  run->phase = RUN_GATED;
  wire_put_u32(payload, (uint32_t)run->program);
  uint32_t told = warden->told ? (uint32_t)told_of_program(run->program, payload + 4) : 0;
  queue_frame(&warden->queue, &(struct frame){ .type = FRAME_GATED, .run = run->id, .length = 4 + told, .payload = payload });
}

static void take_exit(struct warden *warden, struct run *run, const struct ending *ending)
{
  if (run->phase < RUN_STARTED) end_before_start(warden, run, ending);
  else begin_exit(warden, run, ending);
  /* From here on nothing signals the program, so its keeper may let the number go. */
  send(run->link, "", 1, MSG_NOSIGNAL);
}

static void take_report(struct warden *warden, struct run *run, const struct report *report)
{
  /* In a liner it has another number than here, and showed itself before. */
  if (run->phase <= RUN_STARTED && !run->liner) run->program = report->pid;
  if (report->kind == REPORT_GATED && run->phase == RUN_STARTING) say_gated(warden, run);
  else if (report->kind == REPORT_STARTED && run->phase < RUN_STARTED) say_started(warden, run);
  else if (report->kind == REPORT_FAILED && run->phase < RUN_STARTED) fail_start(warden, run, &report->failure);
  else if (report->kind == REPORT_EXITED && run->phase <= RUN_STARTED) take_exit(warden, run, &report->ending);
}

/* A zygote's own word: it has no keeper. */
static void take_word(struct warden *warden, struct run *run, const struct failure *word)
{
  if (word->stage == AT_GATE && run->phase == RUN_STARTING) say_gated(warden, run);
  else if (word->stage != AT_GATE && run->phase < RUN_STARTED) fail_start(warden, run, word);
}

struct heard {
  union {
    struct report report;
    struct failure word;
    struct doors doors;
  };
  ssize_t length;
  bool has_doors; /* with their descriptors */
  pid_t from; /* 0: not told */
};

static pid_t sender_of(struct msghdr *header)
{
  for (struct cmsghdr *part = CMSG_FIRSTHDR(header); part; part = CMSG_NXTHDR(header, part))
    if (part->cmsg_level == SOL_SOCKET && part->cmsg_type == SCM_CREDENTIALS) return ((const struct ucred *)CMSG_DATA(part))->pid;
  return 0;
}

static void hear_once(int link, struct heard *heard)
{
  union doors_control control;
  struct iovec part = { .iov_base = &heard->doors, .iov_len = sizeof heard->doors };
  struct msghdr header = { .msg_iov = &part, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof control.bytes };
  heard->length = recvmsg(link, &header, MSG_CMSG_CLOEXEC);
  heard->from = heard->length > 0 ? sender_of(&header) : 0;
  heard->has_doors = heard->length > 0 && doors_take_over(&header, heard->length == (ssize_t)sizeof heard->doors ? &heard->doors : NULL);
}

static void close_link(struct warden *warden, struct run *run)
{
  close(run->link);
  run->link = -1;
  /* A zygote's link goes by its execve, or with it. */
  if (run->zygote && run->phase < RUN_STARTED && (run->phase == RUN_RELEASED || !run->gate) && run->keeper) say_started(warden, run);
}

static void take_number(struct run *run, pid_t number)
{
  run->program = number;
  kill_shown(run);
}

void runs_hear(struct warden *warden, struct run *run)
{
  struct heard heard;
  while (run->link >= 0) {
    hear_once(run->link, &heard);
    if (heard.length < 0 && errno == EINTR) continue;
    if (heard.length < 0 && errno == EAGAIN) return;
    if (heard.length == (ssize_t)sizeof heard.doors) doors_answer(run->link, guests_keep_doors(run, heard.has_doors ? &heard.doors : NULL));
    else if (heard.length == (ssize_t)sizeof heard.word && run->zygote) take_word(warden, run, &heard.word);
    else if (heard.length != (ssize_t)sizeof heard.report) close_link(warden, run);
    else if (heard.report.kind == REPORT_BORN) take_number(run, heard.from);
    else take_report(warden, run, &heard.report);
  }
}

/*
 * A program may kill its keeper before that said that it runs, so it counts as started; the keeper's number stands for its own where nobody knows it.
 * One that was not released from its gate cannot have run.
 */
static void lose(struct warden *warden, struct run *run, pid_t keeper)
{
  /* The kernel ends what is left in a liner before it tells of the end of its first process. */
  run->orphaned = !run->liner;
  if (run->orphaned) kill_lost(warden, run);
  const struct ending lost = { .kind = ENDING_LOST };
  if (run->gate && run->phase < RUN_RELEASED) return end_before_start(warden, run, &lost);
  if (!run->program) run->program = keeper;
  if (run->phase < RUN_STARTED) say_started(warden, run);
  if (run->phase == RUN_STARTED) begin_exit(warden, run, &lost);
}

static struct ending ending_of(int status)
{
  if (WIFEXITED(status)) return (struct ending){ .kind = 0, .code = (uint32_t)WEXITSTATUS(status) };
  return (struct ending){ .kind = 1, .code = (uint32_t)WTERMSIG(status) };
}

static void bury_zygote(struct warden *warden, struct run *run, int status)
{
  const struct ending ending = ending_of(status);
  runs_hear(warden, run);
  run->keeper = 0;
  if (run->link >= 0) close(run->link);
  run->link = -1;
  if (run->phase < RUN_STARTED) end_before_start(warden, run, &ending);
  else if (run->phase == RUN_STARTED) begin_exit(warden, run, &ending);
}

static void bury_keeper(struct warden *warden, struct run *run, int status)
{
  if (run->zygote) return bury_zygote(warden, run, status);
  pid_t keeper = run->keeper;
  run->keeper = 0;
  runs_hear(warden, run);
  if (run->link >= 0) close(run->link);
  run->link = -1;
  run->lingers = kin_is_left(warden, run);
  bool finished = run->phase == RUN_EXITED || run->phase == RUN_OVER;
  if (!finished || !WIFEXITED(status) || WEXITSTATUS(status)) lose(warden, run, keeper);
}

static void reap_keepers(struct warden *warden)
{
  int status;
  for (size_t i = 0; i < warden->run_count; i++) {
    struct run *run = warden->runs[i];
    pid_t keeper = run->keeper;
    if (!keeper || waitpid(keeper, &status, WNOHANG) != keeper) continue;
    cradle_bury(warden, keeper);
    bury_keeper(warden, run, status);
  }
}

static void reap_any(struct warden *warden)
{
  int status;
  pid_t pid;
  while (!warden->strays && (pid = waitpid(-1, &status, WNOHANG | __WALL)) > 0) {
    cradle_bury(warden, pid);
    for (size_t i = 0; i < warden->run_count; i++)
      if (warden->runs[i]->keeper == pid) bury_keeper(warden, warden->runs[i], status);
  }
}

void runs_reap(struct warden *warden)
{
  reap_any(warden);
  /* While strays are being killed their corpses stay: each takes up room that the others could fork into. */
  if (warden->strays) reap_keepers(warden);
  if (warden->kin.marked) kin_settle(warden);
}

/* True when nothing is left of the run, neither a process nor a word. */
static bool settle(struct warden *warden, struct run *run)
{
  bool ended = run->phase == RUN_EXITED;
  for (int stream = 1; run->phase == RUN_EXITED && stream <= RUN_TAPS; stream++) {
    while (tap_is_open(warden, &run->taps[stream - 1])) tap_read(warden, run, stream);
    ended = ended && run->taps[stream - 1].fd < 0;
  }
  if (ended) say_exited(warden, run);
  if (run->connection) connection_settle(warden, run);
  bool gone = !run->keeper && !run->lingers && (!run->orphaned || !warden->strays);
  for (; gone && run->doom.answers_owed; run->doom.answers_owed--)
    queue_frame(&warden->queue, &(struct frame){ .type = FRAME_GONE, .run = run->id });
  return gone && run->phase == RUN_OVER;
}

void runs_settle(struct warden *warden)
{
  for (size_t i = 0; i < warden->run_count;) {
    struct run *run = warden->runs[i];
    feed_settle(warden, run);
    if (!settle(warden, run)) {
      i++;
      continue;
    }
    feed_close(warden, run);
    guests_forget_doors(warden, run);
    guests_leave(warden, run);
    free(run);
    warden->runs[i] = warden->runs[--warden->run_count];
  }
}
