/*
 * Every process of a run descends from its keeper, whatever it forked and whichever session it made. So a kill is passes over /proc:
 * SIGKILL each live descendant, again, until two passes in a row find none.
 *
 * It converges against a program that forks as fast as it can because the keeper is stopped meanwhile: nobody reaps what was killed,
 * so each corpse goes on counting against the guest's process limit and the room to fork into only shrinks. Then the keeper is let go on: it reaps,
 * tells how the program ended, and ends for want of children.
 *
 * A keeper that a guest of the same id killed leaves its processes to the warden: children of the warden that are no keepers are
 * strays and die in the same passes.
 *
 * A pass trusts no number for longer than it can check it: a listed child is believed only after its listed parent was seen again
 * unchanged, and is killed through a handle, so that outside a cell nothing that is not ours can be hit.
 */
#include "kill.h"

#include <signal.h>
#include <stdlib.h>
#include <unistd.h>
#include <sys/wait.h>

#include "clock.h"
#include "kin.h"
#include "process-table.h"

enum { CLEAN_PASSES = 2, FIRST_PAUSE_MS = 1, LONGEST_PAUSE_MS = 20, KEEPER_PATIENCE_MS = 2000, FAREWELL_PATIENCE_MS = 10000 };

enum judgement { UNJUDGED = 0, FOREIGN, OURS, DOUBTFUL };

struct verdict {
  enum judgement judgement;
  struct run *run; /* NULL: a stray */
};

struct pass {
  struct warden *warden;
  struct process_table table;
  struct verdict *verdicts;
  size_t *path; /* scratch: the way up from one process */
  pid_t self;
  bool everything; /* the warden itself is going: no run is spared */
  unsigned strays_seen;
  pid_t last_group; /* many of a run are in one group, which is struck once */
};

static struct run *run_kept_by(const struct warden *warden, pid_t keeper)
{
  for (size_t i = 0; i < warden->run_count; i++)
    if (warden->runs[i]->keeper == keeper) return warden->runs[i];
  return NULL;
}

/*
 * One signal to a group reaches also the member that was forked after the listing, which is how a program is caught that forks and exits faster
 * than it can be listed. No group reaches beyond its run: every program begins with a session of its own.
 */
static void strike_group(struct pass *pass, pid_t group, const struct run *run)
{
  bool shared = group <= 1 || group == getpgrp() || (run && group == run->keeper);
  if (shared || group == pass->last_group) return;
  pass->last_group = group;
  kill(-group, SIGKILL);
}

static void strike(struct pass *pass, size_t index)
{
  struct verdict *verdict = &pass->verdicts[index];
  const struct process *process = &pass->table.list[index];
  bool doomed = !verdict->run || verdict->run->doom.wanted || pass->everything;
  if (doomed && process->live) {
    if (verdict->run && !pass->everything) verdict->run->doom.live_seen++;
    else pass->strays_seen++;
  }
  if (verdict->judgement != OURS || !doomed) return;
  if (process_kill(process)) strike_group(pass, process->group, verdict->run);
  else verdict->judgement = DOUBTFUL;
}

static bool is_mother(const struct warden *warden, pid_t pid)
{
  return pid == warden->cradle.pid || pid == warden->zygote.pid;
}

/* The parent's verdict is known: this process is ours if the parent is, and doubtful if the parent vanished after it was listed. */
static void judge(struct pass *pass, size_t index)
{
  const struct process *process = &pass->table.list[index];
  struct verdict *verdict = &pass->verdicts[index];
  if (process->parent == pass->self) {
    /* Whoever makes liners has no descendants: those are the warden's own. */
    verdict->judgement = FOREIGN;
    if (!pass->everything && is_mother(pass->warden, process->pid)) return;
    verdict->run = run_kept_by(pass->warden, process->pid);
    verdict->judgement = OURS;
    /* A keeper is no stranger: only the warden reaps it, so its number is certain. */
    if (!verdict->run || pass->everything) strike(pass, index);
    return;
  }
  const struct process *parent = process_table_find(&pass->table, process->parent);
  if (!parent) {
    verdict->judgement = FOREIGN;
    return;
  }
  *verdict = pass->verdicts[parent - pass->table.list];
  if (verdict->judgement != FOREIGN) strike(pass, index);
}

static void judge_with_ancestors(struct pass *pass, size_t index)
{
  size_t depth = 0;
  for (;;) {
    pass->verdicts[index].judgement = FOREIGN; /* holds should numbers reused during the listing close a circle */
    pass->path[depth++] = index;
    const struct process *process = &pass->table.list[index];
    const struct process *parent = process->parent == pass->self ? NULL : process_table_find(&pass->table, process->parent);
    if (!parent) break;
    index = (size_t)(parent - pass->table.list);
    if (pass->verdicts[index].judgement != UNJUDGED) break;
  }
  while (depth) judge(pass, pass->path[--depth]);
}

/* False when the pass could not be made: for want of memory or of /proc. It then counts as not clean. */
static bool make_pass(struct pass *pass)
{
  if (process_table_read(&pass->table) < 0) return false;
  size_t count = pass->table.count;
  pass->verdicts = calloc(count + 1, sizeof *pass->verdicts);
  pass->path = calloc(count + 1, sizeof *pass->path);
  bool able = pass->verdicts && pass->path;
  for (size_t i = 0; able && i < count; i++)
    if (pass->verdicts[i].judgement == UNJUDGED) judge_with_ancestors(pass, i);
  free(pass->verdicts);
  free(pass->path);
  process_table_free(&pass->table);
  return able;
}

static void hold_keeper(struct run *run)
{
  if (run->keeper) kill(run->keeper, SIGSTOP);
  run->doom.released = false;
}

/* Its first process ends when its program has, and all the rest with it. Unless another of its id stopped that one. */
static void advance_liner(struct run *run, int64_t now)
{
  if (now - run->doom.released_at_ms > KEEPER_PATIENCE_MS) kill(run->keeper, SIGKILL);
}

/* Until it has made the program, its first process may be in the zygote's own memory, which is not to be left half changed: then the program is struck when it is there. */
static void strike_liner(struct run *run)
{
  run->doom.released_at_ms = clock_now_ms();
  if (run->liner && run->phase == RUN_STARTING && !run->program) return;
  bool alive = run->program && run->phase < RUN_EXITED;
  kill(alive ? run->program : run->keeper, SIGKILL);
}

void kill_shown(struct run *run)
{
  if (run->doom.wanted && run->keeper) strike_liner(run);
}

static void advance(struct run *run, int64_t now)
{
  struct doom *doom = &run->doom;
  if (run->liner || run->zygote) return advance_liner(run, now);
  if (doom->live_seen) {
    doom->clean_passes = 0;
    hold_keeper(run);
    return;
  }
  if (++doom->clean_passes < CLEAN_PASSES) return;
  run->lingers = false;
  if (!run->keeper) return;
  if (!doom->released) {
    doom->released = true;
    doom->released_at_ms = now;
    kill(run->keeper, SIGCONT);
  } else if (now - doom->released_at_ms > KEEPER_PATIENCE_MS) kill(run->keeper, SIGKILL);
}

static bool is_doomed(const struct run *run)
{
  return run->doom.wanted && (run->keeper || run->lingers);
}


static bool has_work(const struct warden *warden)
{
  bool work = warden->strays;
  for (size_t i = 0; i < warden->run_count; i++) work = work || is_doomed(warden->runs[i]);
  return work;
}

static void schedule(struct warden *warden, int64_t pause_ms)
{
  warden->pass_pause_ms = pause_ms;
  warden->next_pass_ms = clock_now_ms() + pause_ms;
}

void kill_run(struct warden *warden, struct run *run)
{
  run->doom.answers_owed++;
  if (run->doom.wanted) return;
  run->doom.wanted = true;
  if (run->keeper && (run->liner || run->zygote)) {
    strike_liner(run);
    if (!warden->next_pass_ms) schedule(warden, KEEPER_PATIENCE_MS);
    return;
  }
  hold_keeper(run);
  if (run->keeper || run->lingers) schedule(warden, 0);
}

void kill_lost(struct warden *warden, struct run *run)
{
  if (!warden->kin.marked) return kill_strays(warden);
  run->lingers = run->doom.wanted = true;
  schedule(warden, 0);
}

void kill_strays(struct warden *warden)
{
  warden->strays = true;
  warden->stray_clean_passes = 0;
  schedule(warden, 0);
}

void kill_tick(struct warden *warden)
{
  if (!warden->next_pass_ms || clock_now_ms() < warden->next_pass_ms) return;
  for (size_t i = 0; i < warden->run_count; i++) warden->runs[i]->doom.live_seen = 0;
  struct pass pass = { .warden = warden, .self = getpid() };
  if (warden->kin.marked ? kin_strike(warden) : make_pass(&pass)) {
    for (size_t i = 0; i < warden->run_count; i++)
      if (is_doomed(warden->runs[i])) advance(warden->runs[i], clock_now_ms());
    warden->stray_clean_passes = pass.strays_seen ? 0 : warden->stray_clean_passes + 1;
    if (warden->stray_clean_passes >= CLEAN_PASSES) warden->strays = false;
  }
  int64_t longer = warden->pass_pause_ms ? warden->pass_pause_ms * 2 : FIRST_PAUSE_MS;
  if (has_work(warden)) schedule(warden, longer < LONGEST_PAUSE_MS ? longer : LONGEST_PAUSE_MS);
  else warden->next_pass_ms = 0;
}

int kill_wait_ms(const struct warden *warden)
{
  if (!warden->next_pass_ms) return -1;
  int64_t wait = warden->next_pass_ms - clock_now_ms();
  return wait < 0 ? 0 : (int)wait;
}

void kill_all_descendants(struct warden *warden)
{
  /* Nothing is reaped before the passes are clean, for the same reason for which a keeper is stopped. */
  int64_t give_up_ms = clock_now_ms() + FAREWELL_PATIENCE_MS;
  for (int clean = 0; clean < CLEAN_PASSES && clock_now_ms() < give_up_ms;) {
    struct pass pass = { .warden = warden, .self = getpid(), .everything = true };
    clean = make_pass(&pass) && !pass.strays_seen ? clean + 1 : 0;
    usleep(1000);
  }
  while (waitpid(-1, NULL, WNOHANG | __WALL) > 0) { }
}
