/*
 * Two forks and what every program does first cost as much as half of a short program, so they are done ahead: a spare is a keeper whose program has
 * not been told yet what to become. It is the warden's own in everything: in its cgroups, under its filter, with its ids, undumpable, and has of the
 * guests nothing but one side of pipes that nobody uses yet. It waits for the payload of START on its *cradle*, a socket that closes when the warden
 * goes or has no use for it; then it goes on as every program does, so that each START names its own groups, limits, folder and arguments.
 *
 * One is made only once two programs of a kind were started, so that a cell for a single program pays nothing; and none where guests have the
 * warden's own id, because there it would count to what limits them, and they could stop or kill it.
 */
#include "spare.h"

#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fds.h"
#include "keeper.h"
#include "warden.h"

enum { ALIKE_ENOUGH = 2, QUIET_MS = 5 };

static bool is_same(const struct spare_kind *one, const struct spare_kind *other)
{
  return one->uid == other->uid && one->gid == other->gid && one->capabilities == other->capabilities && one->stdin_fed == other->stdin_fed
    && one->gate == other->gate;
}

static void close_ours(const struct spare *spare)
{
  ends_close_side(&spare->ends, ENDS_OURS);
  close(spare->cradle);
}

void spare_forget(struct warden *warden)
{
  close_ours(&warden->spare);
  warden->spare.keeper = 0;
}

/* The program goes when the keeper does. Whoever reaps it finds it unknown by then. */
static void drop(struct warden *warden)
{
  kill(warden->spare.keeper, SIGKILL);
  spare_forget(warden);
}

static void note(struct spare *spare, const struct spare_kind *kind)
{
  spare->alike = is_same(&spare->latest, kind) ? spare->alike + 1 : 1;
  spare->latest = *kind;
}

pid_t spare_take(struct warden *warden, const struct start *start, struct ends *ends)
{
  struct spare *spare = &warden->spare;
  if (start->terminal || start->worker || start->length > SPARE_START_MOST || start->uid == geteuid()) return 0;
  const struct spare_kind kind = {
    .uid = start->uid, .gid = start->gid, .capabilities = start->capabilities, .stdin_fed = start->stdin_fed, .gate = start->gate
  };
  note(spare, &kind);
  if (!spare->keeper) return 0;
  bool fits = is_same(&spare->kind, &kind);
  /* A guest that may signal everybody may have killed it. */
  if (fits && send(spare->cradle, start->bytes, start->length, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)start->length) {
    pid_t keeper = spare->keeper;
    *ends = spare->ends;
    close(spare->cradle);
    spare->keeper = 0;
    return keeper;
  }
  if (fits || spare->alike >= ALIKE_ENOUGH) drop(warden);
  return 0;
}

static bool is_wanted(const struct warden *warden)
{
  const struct spare *spare = &warden->spare;
  return !spare->keeper && spare->alike >= ALIKE_ENOUGH && !warden->strays && !warden->ending && !warden->fatal;
}

static bool is_any_running(const struct warden *warden)
{
  bool running = false;
  for (size_t i = 0; i < warden->run_count; i++) running = running || (!warden->runs[i]->connection && warden->runs[i]->phase < RUN_EXITED);
  return running;
}

static pid_t make_keeper(struct warden *warden, struct spare *made, int far)
{
  const struct spare_kind *kind = &made->kind;
  struct start known = { .uid = kind->uid, .gid = kind->gid, .capabilities = kind->capabilities, .stdin_fed = kind->stdin_fed, .gate = kind->gate };
  if (ends_open(warden, &made->ends, &known) < 0 || !fds_leave_room(made->ends.link[ENDS_OURS]) || !fds_leave_room(made->ends.link[ENDS_THEIRS])) return -1;
  return keeper_fork(&(struct plan){ .warden = warden, .start = &known, .cradle = far }, &made->ends);
}

static void make(struct warden *warden)
{
  struct spare *spare = &warden->spare;
  struct spare made = { .ends = ENDS_NONE, .kind = spare->latest, .latest = spare->latest, .alike = spare->alike };
  int pair[2];
  /* Where it cannot be made, two more STARTs pass before it is tried again. */
  spare->alike = 0;
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0) return;
  made.cradle = pair[0];
  made.keeper = make_keeper(warden, &made, pair[1]);
  close(pair[1]);
  ends_close_side(&made.ends, ENDS_THEIRS);
  if (made.keeper > 0) *spare = made;
  else close_ours(&made);
}

void spare_tend(struct warden *warden, bool idle)
{
  if (is_wanted(warden) && (idle || !is_any_running(warden))) make(warden);
}

int spare_wait_ms(const struct warden *warden)
{
  return is_wanted(warden) ? QUIET_MS : -1;
}
