/*
 * Who belongs to a run is told by its keeper, which every orphan of the run lands at. A kernel without PR_SET_CHILD_SUBREAPER, as gVisor's of 2022, hands orphans
 * to pid 1 instead. There each run has a mark: a supplementary group that is nobody's, which the keeper takes before it forks the program. Every process has the groups
 * of its parent, and to be rid of one takes CAP_SETGID, which no guest has or can have: not even in a user namespace of its own, for the warden's filter lets nobody
 * make one. The mark is a number that no file can have, since no cell has so many ids, and no two runs of a cell ever have the same.
 *
 * So who bears the mark, as the kernel's /proc tells it, is of the run. A kill strikes all of them, and their process groups, again and again, until a whole pass finds
 * none; after a few rounds in which there always was somebody, nobody in the cell can fork until it does (brake.c).
 *
 * Beside that the kernel's own pids group bounds how many processes all guests have together: such a kernel counts none for us outside.
 */
#include "kin.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "die.h"
#include "process-table.h"

enum { ROUNDS_MOST = 64, ROUNDS_UNBRAKED = 3, STATUS_MOST = 4096 };
#define FIRST_MARK UINT32_C(0x80000000)

/* Everywhere in a cell, and empty. */
static const char STAGE[] = "/run";

/* Pid 1 is told that it became one by kernels on which nobody else can. */
static bool has_subreapers(void)
{
  int status;
  pid_t child = fork();
  if (child < 0) die("fork", "a trial");
  if (child == 0) _exit(prctl(PR_SET_CHILD_SUBREAPER, 1) < 0);
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) { }
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* Only the door of the group is kept, by which nobody gets out of it; the hierarchy is mounted nowhere any more. */
static struct kin open_guests(const struct arguments *arguments)
{
  struct brake_order order = { .most = arguments->guests_most, .uid = arguments->own_uid, .gid = arguments->own_gid };
  if (mount("cgroup", STAGE, "cgroup", MS_NOSUID | MS_NODEV | MS_NOEXEC, "pids") < 0) die("mount", "groups that count processes");
  int folder = open(STAGE, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) die("open", "groups that count processes");
  if (mkdirat(folder, "guests", 0700) < 0) die("make", "the group of guests");
  order.file = openat(folder, "guests/pids.max", O_WRONLY | O_CLOEXEC);
  if (order.file < 0 || write(order.file, order.most, strlen(order.most)) < 0) die("bound", "the group of guests");
  int door = openat(folder, "guests/cgroup.procs", O_WRONLY | O_CLOEXEC);
  if (door < 0) die("open", "the group of guests");
  close(folder);
  if (umount2(STAGE, MNT_DETACH) < 0) die("unmount", "groups that count processes");
  return (struct kin){ .guests = door, .brake = brake_fork(&order) };
}

struct kin kin_open(const struct arguments *arguments)
{
  if (!arguments->guests_most) return (struct kin){ .guests = -1 };
  struct kin kin = open_guests(arguments);
  kin.marked = !has_subreapers();
  return kin;
}

uint32_t kin_mark(const struct warden *warden, uint32_t run)
{
  return warden->kin.marked ? FIRST_MARK + run : 0;
}

/* 0: none. A program names itself, and that comes first: the last line of its kind is the kernel's. */
static uint32_t mark_in(const char *status)
{
  static const char field[] = "\nGroups:";
  const char *groups = NULL;
  for (const char *next = status; (next = strstr(next, field)); next += sizeof field - 1) groups = next + sizeof field - 1;
  for (char *end; groups && *groups && *groups != '\n'; groups = end) {
    unsigned long group = strtoul(groups, &end, 10);
    if (end == groups) break;
    if (group > FIRST_MARK) return (uint32_t)group;
  }
  return 0;
}

static uint32_t mark_of(pid_t pid)
{
  char path[32], status[STATUS_MOST];
  snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  ssize_t got, length = 0;
  while (length < STATUS_MOST - 1 && (got = read(fd, status + length, (size_t)(STATUS_MOST - 1 - length))) > 0) length += got;
  close(fd);
  status[length] = 0;
  return mark_in(status);
}

static struct run *run_marked(const struct warden *warden, uint32_t mark)
{
  for (size_t i = 0; mark && i < warden->run_count; i++)
    if (!warden->runs[i]->connection && FIRST_MARK + warden->runs[i]->id == mark) return warden->runs[i];
  return NULL;
}

/* The group of processes reaches also who was forked after the listing. None reaches beyond its run: every program begins with a session of its own. */
static void strike(const struct process *process, const struct run *run)
{
  kill(process->pid, SIGKILL);
  if (process->group > 1 && process->group != run->keeper && process->group != getpgrp()) kill(-process->group, SIGKILL);
}

/* Counts the living of each run; false when nobody could look. With `struck` those of runs that are to die are struck, and counted there. */
static bool look(struct warden *warden, unsigned *struck)
{
  struct process_table table;
  if (process_table_read(&table) < 0) return false;
  for (size_t i = 0; i < warden->run_count; i++) warden->runs[i]->marked_seen = 0;
  for (size_t i = 0; i < table.count; i++) {
    const struct process *process = &table.list[i];
    struct run *run = process->live ? run_marked(warden, mark_of(process->pid)) : NULL;
    if (!run || process->pid == run->keeper) continue;
    run->marked_seen++;
    if (!struck || !run->doom.wanted) continue;
    ++*struck;
    strike(process, run);
  }
  process_table_free(&table);
  return true;
}

bool kin_strike(struct warden *warden)
{
  for (int round = 0; round < ROUNDS_MOST; round++) {
    unsigned struck = 0;
    if (!look(warden, &struck)) return false;
    for (size_t i = 0; i < warden->run_count; i++) warden->runs[i]->doom.live_seen += warden->runs[i]->marked_seen;
    if (!struck) {
      brake_let_go(&warden->kin.brake);
      return true;
    }
    if (round >= ROUNDS_UNBRAKED) brake_hold(&warden->kin.brake);
  }
  return true;
}

bool kin_is_left(struct warden *warden, const struct run *run)
{
  return warden->kin.marked && !run->connection && (!look(warden, NULL) || run->marked_seen);
}

void kin_settle(struct warden *warden)
{
  bool any = false;
  /* Of one that is being killed the passes tell. */
  for (size_t i = 0; i < warden->run_count; i++) any = any || (warden->runs[i]->lingers && !warden->runs[i]->doom.wanted);
  if (!any || !look(warden, NULL)) return;
  for (size_t i = 0; i < warden->run_count; i++)
    if (!warden->runs[i]->doom.wanted && !warden->runs[i]->marked_seen) warden->runs[i]->lingers = false;
}
