#include "spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "caps.h"
#include "fds.h"
#include "keeper.h"
#include "report.h"
#include "terminal.h"
#include "wire.h"

enum { OURS = 0, THEIRS = 1 };

/* [stream][side] and the link to the keeper; -1 where there is none. */
struct ends {
  int stdio[3][2];
  int link[2];
};

void spawn_refuse(struct warden *warden, uint32_t id, const struct failure *failure)
{
  uint8_t payload[8 + FRAME_TEXT_MOST];
  size_t length = strnlen(failure->text, sizeof failure->text);
  wire_put_u32(payload, failure->stage);
  wire_put_u32(payload + 4, failure->error);
  memcpy(payload + 8, failure->text, length);
  queue_frame(&warden->queue, &(struct frame){ .type = FRAME_FAILED, .run = id, .length = (uint32_t)(8 + length), .payload = payload });
}

static void close_side(const struct ends *ends, int side)
{
  for (int stream = 0; stream < 3; stream++)
    if (ends->stdio[stream][side] >= 0) close(ends->stdio[stream][side]);
  if (ends->link[side] >= 0) close(ends->link[side]);
}

/* Each stream has a descriptor of its own, so that each can be closed by itself. */
static int open_terminal(const struct warden *warden, struct ends *ends, const struct start *start)
{
  struct terminal terminal;
  if (terminal_open(warden, start, &terminal) < 0) return -1;
  ends->stdio[0][OURS] = terminal.near;
  ends->stdio[0][THEIRS] = terminal.far;
  int result = ends->stdio[1][OURS] = fcntl(terminal.near, F_DUPFD_CLOEXEC, 3);
  for (int stream = 1; stream < 3 && result >= 0; stream++) result = ends->stdio[stream][THEIRS] = fcntl(terminal.far, F_DUPFD_CLOEXEC, 3);
  return result < 0 ? -1 : 0;
}

static int open_pipes(struct ends *ends, const struct start *start)
{
  for (int stream = start->stdin_fed ? 0 : 1; stream < 3; stream++) {
    int pair[2];
    if (pipe2(pair, O_CLOEXEC) < 0) return -1;
    ends->stdio[stream][OURS] = pair[stream == 0 ? 1 : 0];
    ends->stdio[stream][THEIRS] = pair[stream == 0 ? 0 : 1];
    if (fds_set_nonblocking(ends->stdio[stream][OURS]) < 0) return -1;
  }
  return 0;
}

/* A pipe and a terminal belong to the file-system id that made them; it must be the guest's, or the guest could not open /dev/stdout. */
static int open_stdio_as_guest(const struct warden *warden, struct ends *ends, const struct start *start)
{
  setfsgid(start->gid);
  setfsuid(start->uid);
  int result = start->terminal ? open_terminal(warden, ends, start) : open_pipes(ends, start);
  int error = errno;
  setfsuid(geteuid());
  /* Who stops being 0 loses the rights over files from the effective set, and is no longer what it was found to be. */
  uint64_t permitted;
  if (caps_permitted(&permitted) == 0) caps_set(permitted);
  setfsgid(getegid());
  /* A changed id resets this to whatever the host's fs.suid_dumpable says. */
  prctl(PR_SET_DUMPABLE, 0);
  errno = error;
  return result;
}

static int open_ends(const struct warden *warden, struct ends *ends, const struct start *start)
{
  if (open_stdio_as_guest(warden, ends, start) < 0) return -1;
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends->link) < 0) {
    ends->link[OURS] = ends->link[THEIRS] = -1;
    return -1;
  }
  return fds_set_nonblocking(ends->link[OURS]);
}

static pid_t fork_keeper(struct warden *warden, struct start *start, const struct ends *ends)
{
  struct plan plan = { .warden = warden, .start = start, .link = ends->link[THEIRS] };
  for (int stream = 0; stream < 3; stream++) plan.stdio[stream] = ends->stdio[stream][THEIRS];
  pid_t keeper = fork();
  if (keeper == 0) keep(&plan);
  return keeper;
}

static void refuse(struct warden *warden, uint32_t id, const char *object)
{
  struct failure failure = { .stage = STAGE_SET_UP };
  failure_note(&failure, "make", object);
  spawn_refuse(warden, id, &failure);
}

static void enlist(struct warden *warden, struct run *run, const struct ends *ends)
{
  run->link = ends->link[OURS];
  for (int i = 0; i < 2; i++) run->taps[i] = (struct tap){ .fd = ends->stdio[i + 1][OURS], .terminal = run->terminal, .credit = FRAME_WINDOW };
  run->feed = (struct feed){ .fd = ends->stdio[0][OURS], .credit = FRAME_WINDOW, .last = '\n' };
  warden->runs[warden->run_count++] = run;
}

void spawn_run(struct warden *warden, uint32_t id, struct start *start)
{
  errno = EAGAIN;
  if (warden->run_count == WARDEN_RUNS_MOST) return refuse(warden, id, "one more run");
  if (start->terminal && !terminal_is_free(warden)) return refuse(warden, id, "one more terminal");
  struct ends ends = { { { -1, -1 }, { -1, -1 }, { -1, -1 } }, { -1, -1 } };
  struct run *run = calloc(1, sizeof *run);
  if (!run) return refuse(warden, id, "run");
  run->id = id;
  run->gate = start->gate;
  run->terminal = start->terminal;
  const char *object = start->terminal ? "one more terminal" : "pipes";
  if (open_ends(warden, &ends, start) == 0 && fds_leave_room(ends.link[OURS]) && fds_leave_room(ends.link[THEIRS])) {
    object = "keeper";
    run->keeper = fork_keeper(warden, start, &ends);
  }
  if (run->keeper > 0) {
    enlist(warden, run, &ends);
    close_side(&ends, THEIRS);
    return;
  }
  refuse(warden, id, object);
  close_side(&ends, OURS);
  close_side(&ends, THEIRS);
  free(run);
}
