/*
 * inspect: reads a pid from stdin, to its end, and writes the seccomp filter that this process loaded last to stdout, as an array of struct
 * sock_filter; nothing when it has none, or when no pid came. From stdin, so that it can be started while the process is still on its way.
 *
 * Only a tracer of a stopped process may ask the kernel for that, and only with CAP_SYS_ADMIN. The process is seized and interrupted, which sends it
 * no signal: a system call in which it waits is begun again when it is let go, and its parent hears nothing. Should this program
 * be killed meanwhile, the kernel lets the process go.
 */
#include <errno.h>
#include <linux/filter.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

enum { INSPECT_FAILED = 72 };

static _Noreturn void fail(const char *verb, const char *object)
{
  dprintf(STDERR_FILENO, "inspect: %s %s: %s\n", verb, object, strerror(errno));
  exit(INSPECT_FAILED);
}

static pid_t parse_pid(const char *text)
{
  char *end;
  errno = 0;
  long value = strtol(text, &end, 10);
  if (errno || end == text || *end || value < 1 || value > 0x7fffffff) {
    errno = EINVAL;
    fail("understand", text);
  }
  return (pid_t)value;
}

/* 0 when nobody is to be looked at after all. */
static pid_t read_pid(void)
{
  char text[16];
  size_t length = 0;
  for (ssize_t got = 1; got != 0 && length < sizeof text - 1; length += (size_t)got) {
    while ((got = read(STDIN_FILENO, text + length, sizeof text - 1 - length)) < 0 && errno == EINTR) { }
    if (got < 0) fail("read", "the pid");
  }
  text[length] = '\0';
  return length == 0 ? 0 : parse_pid(text);
}

/* Answers the signal that was about to be delivered when it stopped, or 0: it must get that when it goes on. */
static int stop(pid_t pid)
{
  int status;
  if (ptrace(PTRACE_SEIZE, pid, NULL, NULL) < 0) fail("trace", "the process");
  if (ptrace(PTRACE_INTERRUPT, pid, NULL, NULL) < 0) fail("interrupt", "the process");
  while (waitpid(pid, &status, __WALL) < 0)
    if (errno != EINTR) fail("wait for", "the process");
  if (!WIFSTOPPED(status)) {
    errno = ESRCH;
    fail("stop", "the process");
  }
  return status >> 16 ? 0 : WSTOPSIG(status);
}

/* The kernel numbers filters from the oldest to the newest. Answers how many instructions the newest has. */
static size_t read_newest(pid_t pid, struct sock_filter code[BPF_MAXINSNS])
{
  unsigned long index = 0;
  while (ptrace(PTRACE_SECCOMP_GET_FILTER, pid, (void *)index, NULL) >= 0) index++;
  /* EINVAL: without a filter the process is in no mode that has any. */
  if (errno != ENOENT && errno != EINVAL) fail("read", "the filter");
  if (index == 0) return 0;
  long length = ptrace(PTRACE_SECCOMP_GET_FILTER, pid, (void *)(index - 1), code);
  if (length < 0) fail("read", "the filter");
  return (size_t)length;
}

static void write_all(const void *bytes, size_t length)
{
  for (const char *at = bytes; length > 0;) {
    ssize_t put = write(STDOUT_FILENO, at, length);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) fail("write", "the filter");
    at += put;
    length -= (size_t)put;
  }
}

int main(void)
{
  struct sock_filter code[BPF_MAXINSNS];
  pid_t pid = read_pid();
  if (pid == 0) return 0;
  int signal = stop(pid);
  size_t length = read_newest(pid, code);
  if (ptrace(PTRACE_DETACH, pid, NULL, (void *)(long)signal) < 0) fail("let go", "the process");
  write_all(code, length * sizeof *code);
  return 0;
}
