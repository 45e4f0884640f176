/*
 * inspect: reads a pid from stdin, to its end, and writes the seccomp filter that this process loaded last to stdout, as an array of struct
 * sock_filter; nothing when it has none, or when no pid came. From stdin, so that it can be started while the process is still on its way.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "newest-filter.h"

enum { INSPECT_FAILED = 72 };

static _Noreturn void fail(const char *verb, const char *object)
{
  dprintf(STDERR_FILENO, "inspect: %s %s: %s\n", verb, object, strerror(errno));
  exit(INSPECT_FAILED);
}

int main(void)
{
  struct filter_reading reading;
  pid_t pid = read_pid(STDIN_FILENO);
  if (pid < 0) fail("understand", "the pid");
  if (pid == 0) return 0;
  if (!read_newest_filter(pid, &reading)) fail(reading.verb, reading.object);
  if (!write_all(STDOUT_FILENO, reading.code, reading.length * sizeof *reading.code)) fail("write", "the filter");
  return 0;
}
