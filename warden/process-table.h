/* A snapshot of /proc: who is whose child. */
#ifndef GLOVEBOX_PROCESS_TABLE_H
#define GLOVEBOX_PROCESS_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct process {
  pid_t pid, parent, group;
  bool live; /* has a thread that can still run */
  bool leaving; /* runs nothing of its own any more */
  uint64_t started;
};

struct process_table {
  struct process *list; /* by rising pid */
  size_t count, room;
};

/* Takes one line of /proc/PID/stat apart. A program names itself, so the name may hold anything, parentheses and newlines too. */
bool process_parse(const char *line, size_t length, struct process *process);
int process_table_read(struct process_table *table);
const struct process *process_table_find(const struct process_table *table, pid_t pid);
void process_table_free(struct process_table *table);

/* Whether it is no more, or on its way out. Only for one whose number is certain. */
bool process_is_leaving(pid_t pid);

/* SIGKILLs exactly the process that was listed. False when it is no more, or its number now means another. */
bool process_kill(const struct process *process);

#endif
