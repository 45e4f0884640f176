#include "newest-filter.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

static bool refuse(struct filter_reading *reading, const char *verb, const char *object)
{
  reading->verb = verb;
  reading->object = object;
  return false;
}

pid_t read_pid(int fd)
{
  char text[16];
  size_t length = 0;
  for (ssize_t got = 1; got != 0 && length < sizeof text - 1 && !memchr(text, '\n', length); length += (size_t)got) {
    while ((got = read(fd, text + length, sizeof text - 1 - length)) < 0 && errno == EINTR) { }
    if (got < 0) return -1;
  }
  if (length == 0) return 0;
  if (text[length - 1] == '\n') length--;
  text[length] = '\0';
  char *end;
  errno = 0;
  long value = strtol(text, &end, 10);
  if (errno == 0 && end != text && !*end && value >= 1 && value <= 0x7fffffff) return (pid_t)value;
  errno = EINVAL;
  return -1;
}

/* `signal` becomes the one that was about to be delivered when it stopped, or 0: it must get that when it goes on. */
static bool stop(pid_t pid, struct filter_reading *reading, int *signal)
{
  int status;
  if (ptrace(PTRACE_SEIZE, pid, NULL, NULL) < 0) return refuse(reading, "trace", "the process");
  if (ptrace(PTRACE_INTERRUPT, pid, NULL, NULL) < 0) return refuse(reading, "interrupt", "the process");
  while (waitpid(pid, &status, __WALL) < 0)
    if (errno != EINTR) return refuse(reading, "wait for", "the process");
  errno = ESRCH;
  if (!WIFSTOPPED(status)) return refuse(reading, "stop", "the process");
  *signal = status >> 16 ? 0 : WSTOPSIG(status);
  return true;
}

/* The kernel numbers filters from the oldest to the newest. */
static bool read_newest(pid_t pid, struct filter_reading *reading)
{
  unsigned long index = 0;
  reading->length = 0;
  while (ptrace(PTRACE_SECCOMP_GET_FILTER, pid, (void *)index, NULL) >= 0) index++;
  /* EINVAL: without a filter the process is in no mode that has any. */
  if (errno != ENOENT && errno != EINVAL) return refuse(reading, "read", "the filter");
  if (index == 0) return true;
  long length = ptrace(PTRACE_SECCOMP_GET_FILTER, pid, (void *)(index - 1), reading->code);
  if (length < 0) return refuse(reading, "read", "the filter");
  reading->length = (size_t)length;
  return true;
}

bool read_newest_filter(pid_t pid, struct filter_reading *reading)
{
  int signal;
  if (!stop(pid, reading, &signal)) return false;
  bool found = read_newest(pid, reading);
  int why = errno;
  if (ptrace(PTRACE_DETACH, pid, NULL, (void *)(long)signal) < 0 && found) return refuse(reading, "let go", "the process");
  errno = why;
  return found;
}

bool write_all(int fd, const void *bytes, size_t length)
{
  for (const char *at = bytes; length > 0;) {
    ssize_t put = write(fd, at, length);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return false;
    at += put;
    length -= (size_t)put;
  }
  return true;
}
