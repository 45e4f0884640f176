#include "process-table.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SYS_pidfd_send_signal
#define SYS_pidfd_send_signal 424
#endif

/* The kernel's PF_EXITING: set before anything of a process is given back. */
enum { EXITING = 4 };

bool process_parse(const char *line, size_t length, struct process *process)
{
  const char *close = memrchr(line, ')', length);
  if (!close) return false;
  char rest[512];
  size_t left = length - (size_t)(close + 1 - line);
  if (left >= sizeof rest) left = sizeof rest - 1;
  memcpy(rest, close + 1, left);
  rest[left] = 0;
  char state;
  int parent, group;
  long threads;
  unsigned flags;
  unsigned long long started;
  int found = sscanf(rest, " %c %d %d %*d %*d %*d %u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %ld %*d %llu", &state, &parent, &group, &flags, &threads, &started);
  if (found != 6) return false;
  process->pid = atoi(line);
  process->parent = parent;
  process->group = group;
  /* A leader that has ended shows as a zombie although its other threads run on. */
  process->live = (state != 'Z' && state != 'X' && state != 'x') || threads > 1;
  process->leaving = !process->live || ((flags & EXITING) && threads <= 1);
  process->started = started;
  return process->pid > 0;
}

static bool read_stat(int folder, const char *name, struct process *process)
{
  int fd = openat(folder, name, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  char line[1024];
  ssize_t got = read(fd, line, sizeof line);
  close(fd);
  return got > 0 && process_parse(line, (size_t)got, process);
}

static int append(struct process_table *table, const struct process *process)
{
  if (table->count == table->room) {
    size_t room = table->room ? table->room * 2 : 256;
    struct process *list = realloc(table->list, room * sizeof *list);
    if (!list) return -1;
    table->list = list;
    table->room = room;
  }
  table->list[table->count++] = *process;
  return 0;
}

static int by_pid(const void *left, const void *right)
{
  pid_t a = ((const struct process *)left)->pid, b = ((const struct process *)right)->pid;
  return (a > b) - (a < b);
}

int process_table_read(struct process_table *table)
{
  *table = (struct process_table){ 0 };
  DIR *proc = opendir("/proc");
  if (!proc) return -1;
  int result = 0;
  struct dirent *entry;
  while (result == 0 && (entry = readdir(proc))) {
    if (!isdigit((unsigned char)entry->d_name[0])) continue;
    char name[sizeof entry->d_name + 8];
    struct process process;
    snprintf(name, sizeof name, "%s/stat", entry->d_name);
    if (read_stat(dirfd(proc), name, &process)) result = append(table, &process);
  }
  closedir(proc);
  if (table->count) qsort(table->list, table->count, sizeof *table->list, by_pid);
  if (result < 0) process_table_free(table);
  return result;
}

const struct process *process_table_find(const struct process_table *table, pid_t pid)
{
  struct process key = { .pid = pid };
  return table->count ? bsearch(&key, table->list, table->count, sizeof key, by_pid) : NULL;
}

void process_table_free(struct process_table *table)
{
  free(table->list);
  *table = (struct process_table){ 0 };
}

bool process_is_leaving(pid_t pid)
{
  char path[32];
  snprintf(path, sizeof path, "/proc/%d/stat", pid);
  struct process process;
  return !read_stat(AT_FDCWD, path, &process) || process.leaving;
}

bool process_kill(const struct process *process)
{
  /* An open /proc/PID means that one process for ever, and is a handle to signal it by. */
  char path[32];
  snprintf(path, sizeof path, "/proc/%d", process->pid);
  int folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return false;
  struct process now;
  bool same = read_stat(folder, "stat", &now) && now.started == process->started;
  if (same && now.live) syscall(SYS_pidfd_send_signal, folder, SIGKILL, NULL, 0);
  close(folder);
  return same;
}
