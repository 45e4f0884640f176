/*
 * inspect PID: writes the seccomp filter that a process loaded last to stdout, as an array of struct sock_filter; nothing when it has none.
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

int main(int argc, char **argv)
{
  struct sock_filter code[BPF_MAXINSNS];
  if (argc != 2) {
    errno = EINVAL;
    fail("understand", "the arguments");
  }
  pid_t pid = parse_pid(argv[1]);
  int signal = stop(pid);
  size_t length = read_newest(pid, code);
  if (ptrace(PTRACE_DETACH, pid, NULL, (void *)(long)signal) < 0) fail("let go", "the process");
  write_all(code, length * sizeof *code);
  return 0;
}
