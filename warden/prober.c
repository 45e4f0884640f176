/*
 * prober: a guest of `glovebox verify`. Makes every system call from 0 to the last that is known with nothing but zeros, each in a child of its own, and enters the
 * kernel by the doors that a 64-bit program does not need. Writes a line for each: what it was, and what came of it. It is sent into a cell, and decides nothing.
 *
 *   call NUMBER ERRNO    the call answered with this error, 0 when it did something
 *   call NUMBER !SIGNAL  the child was ended by this signal
 *   entry NAME ERRNO|!SIGNAL
 */
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LAST_CALL = 470, PATIENCE_US = 60000, ODD_ERROR = 250 };

/* An error is told by the exit code: every number of one that is used is below. */
static _Noreturn void tell(long result)
{
  int code = result >= 0 ? 0 : errno < ODD_ERROR ? errno : ODD_ERROR;
  syscall(SYS_exit_group, code);
  _exit(code);
}

static void be_patient(void)
{
  struct itimerval timer = { .it_value = { .tv_usec = PATIENCE_US } };
  signal(SIGALRM, SIG_DFL);
  setitimer(ITIMER_REAL, &timer, NULL);
}

static void report(const char *what, pid_t child)
{
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  if (WIFSIGNALED(status)) printf("%s !%d\n", what, WTERMSIG(status));
  else printf("%s %d\n", what, WEXITSTATUS(status));
}

static bool begin(pid_t *child)
{
  fflush(stdout);
  *child = fork();
  if (*child < 0) {
    perror("prober: fork");
    exit(1);
  }
  if (*child > 0) return false;
  setpgid(0, 0);
  be_patient();
  return true;
}

static void try_call(long number)
{
  char what[32];
  pid_t child;
  if (begin(&child)) tell(syscall(number, 0L, 0L, 0L, 0L, 0L, 0L));
  snprintf(what, sizeof what, "call %ld", number);
  report(what, child);
}

#ifdef __x86_64__
/* The entry of 32-bit programs, by which getpid is 20. */
static long enter_by_interrupt(void)
{
  long result;
  __asm__ volatile("int $0x80" : "=a"(result) : "a"(20L), "b"(0L), "c"(0L), "d"(0L) : "memory");
  if (result >= 0) return result;
  errno = (int)-result;
  return -1;
}

/* The numbers of x32, which share an entry with those of 64 bits. */
static long enter_as_x32(void)
{
  return syscall(0x40000000L + 39);
}

static void try_entry(const char *name, long (*enter)(void))
{
  char what[32];
  pid_t child;
  if (begin(&child)) tell(enter());
  snprintf(what, sizeof what, "entry %s", name);
  report(what, child);
}
#endif

int main(void)
{
#ifdef __x86_64__
  try_entry("int80", enter_by_interrupt);
  try_entry("x32", enter_as_x32);
#endif
  for (long number = 0; number <= LAST_CALL; number++) try_call(number);
  puts("done");
  return 0;
}
