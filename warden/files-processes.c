/* PROCESSES: who runs in the cell, as its /proc shows them. One that is hidden or gone meanwhile is left out. */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "files-operations.h"

enum { COMMAND_MOST = 4096, STAT_MOST = 1024 };

struct running {
  uint32_t pid, parent, uid;
  char state;
  uint64_t cpu_ticks, resident_pages, start_ticks;
  char command[COMMAND_MOST];
  size_t command_length;
};

static ssize_t read_file(int folder, const char *name, char *text, size_t most)
{
  int fd = openat(folder, name, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return -1;
  ssize_t got = read(fd, text, most);
  close(fd);
  return got;
}

/* The name in parentheses is the program's own, and may hold anything. */
static bool parse_stat(char *line, struct running *running)
{
  char *open = strchr(line, '('), *close = strrchr(line, ')');
  if (!open || !close || close < open) return false;
  unsigned long long user, system, started;
  long long resident;
  int parent;
  int found = sscanf(close + 1, " %c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu %*d %*d %*d %*d %*d %*d %llu %*u %lld", &running->state, &parent,
                     &user, &system, &started, &resident);
  if (found != 6) return false;
  running->parent = (uint32_t)parent;
  running->cpu_ticks = user + system;
  running->start_ticks = started;
  running->resident_pages = resident > 0 ? (uint64_t)resident : 0;
  running->command_length = (size_t)snprintf(running->command, sizeof running->command, "[%.*s]", (int)(close - open - 1), open + 1);
  return true;
}

/* From its status: the owner of its folder is root's when it cannot be looked into. */
static bool parse_uid(const char *status, struct running *running)
{
  const char *line = strstr(status, "\nUid:");
  return line && sscanf(line, "\nUid: %*u %u", &running->uid) == 1;
}

static void take_command(int folder, struct running *running)
{
  char text[COMMAND_MOST];
  ssize_t got = read_file(folder, "cmdline", text, sizeof text);
  while (got > 0 && !text[got - 1]) got--;
  if (got <= 0) return;
  for (ssize_t i = 0; i < got; i++) running->command[i] = text[i] ? text[i] : ' ';
  running->command_length = (size_t)got;
}

static bool look_at(int proc, const char *name, struct running *running)
{
  char line[STAT_MOST + 1], status[STAT_MOST * 4 + 1];
  int folder = openat(proc, name, O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return false;
  *running = (struct running){ .pid = (uint32_t)strtoul(name, NULL, 10) };
  ssize_t got = read_file(folder, "stat", line, STAT_MOST), said = read_file(folder, "status", status, sizeof status - 1);
  line[got < 0 ? 0 : got] = status[said < 0 ? 0 : said] = 0;
  bool known = got > 0 && said > 0 && parse_stat(line, running) && parse_uid(status, running);
  if (known) take_command(folder, running);
  close(folder);
  return known;
}

static void tell(struct files *files, const struct running *running)
{
  uint64_t per_second = (uint64_t)sysconf(_SC_CLK_TCK);
  reply_begin(files, REPLY_PROCESS);
  reply_u32(files, running->pid);
  reply_u32(files, running->parent);
  reply_u32(files, running->uid);
  reply_u32(files, (uint8_t)running->state);
  reply_u64(files, running->cpu_ticks * 1000 / per_second);
  reply_u64(files, running->resident_pages * (uint64_t)sysconf(_SC_PAGESIZE));
  reply_u64(files, running->start_ticks);
  reply_text(files, running->command, running->command_length);
  reply_end(files);
}

void files_processes(struct files *files, const struct request *request)
{
  (void)request;
  struct running running;
  uint64_t count = 0;
  DIR *proc = opendir("/proc");
  if (!proc) return reply_error(files, "open", "/proc");
  for (struct dirent *entry; !files->over && (entry = readdir(proc));) {
    if (!isdigit((unsigned char)entry->d_name[0]) || !look_at(dirfd(proc), entry->d_name, &running)) continue;
    tell(files, &running);
    count++;
  }
  closedir(proc);
  reply_done(files, count);
}
