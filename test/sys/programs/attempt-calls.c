/*
 * Attempts system calls where it is started, each in a child of its own, and prints what became of them. Standard input has a line for each:
 *   native NUMBER [ARGUMENT]...    through the machine's own entry
 *   i386 NUMBER [ARGUMENT]...      through the 32-bit entry of x86-64
 *   x32 NUMBER [ARGUMENT]...       through the machine's own entry, with the x32 bit
 * Numbers and arguments are decimal or 0x-hexadecimal; arguments that are not given are zero. A line of output is what came of the line of input:
 * ok, errno:NUMBER, or signal:NUMBER, which is 14 for a call that waits.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST_ARGUMENTS = 6, PATIENCE_US = 100000, X32_BIT = 0x40000000 };

struct attempt {
  char entry[16];
  long number;
  long arguments[MOST_ARGUMENTS];
};

/* Without a function around it: a child of vfork would return from it on a stack that its parent still needs. */
#ifdef __x86_64__
#define ENTER(result, number, a)                                                                                       \
  do {                                                                                                                 \
    register long r10 __asm__("r10") = (a)[3], r8 __asm__("r8") = (a)[4], r9 __asm__("r9") = (a)[5];                   \
    __asm__ volatile("syscall"                                                                                         \
                     : "=a"(result)                                                                                    \
                     : "a"(number), "D"((a)[0]), "S"((a)[1]), "d"((a)[2]), "r"(r10), "r"(r8), "r"(r9)                  \
                     : "rcx", "r11", "memory");                                                                        \
  } while (0)

/* The sixth argument would be in the frame pointer, which the compiler keeps to itself. */
static long enter_i386(long number, const long *a) {
  long result;
  __asm__ volatile("int $0x80" : "=a"(result) : "a"(number), "b"(a[0]), "c"(a[1]), "d"(a[2]), "S"(a[3]), "D"(a[4]) : "memory", "r8", "r9", "r10", "r11");
  return (int)result;
}
#else
#define ENTER(result, number, a)                                                     \
  do {                                                                               \
    (result) = syscall((number), (a)[0], (a)[1], (a)[2], (a)[3], (a)[4], (a)[5]);    \
    if ((result) == -1) (result) = -errno;                                           \
  } while (0)

static long enter_i386(long number, const long *a) {
  return number + a[0] < 0 ? -ENOSYS : -ENOEXEC;
}
#endif

static void attempt_and_exit(const struct attempt *attempt) {
  const struct itimerval patience = {.it_value = {.tv_usec = PATIENCE_US}};
  const long none[MOST_ARGUMENTS] = {0};
  long result, ignored;
  setitimer(ITIMER_REAL, &patience, NULL);
  if (strcmp(attempt->entry, "i386") == 0) result = enter_i386(attempt->number, attempt->arguments);
  else if (strcmp(attempt->entry, "x32") == 0) ENTER(result, attempt->number | X32_BIT, attempt->arguments);
  else ENTER(result, attempt->number, attempt->arguments);
  const long status[MOST_ARGUMENTS] = {result < 0 && result > -256 ? -result : 0};
  ENTER(ignored, SYS_exit_group, status);
  ENTER(ignored, SYS_exit, none);
  (void)ignored;
}

static int read_attempt(char *line, struct attempt *attempt) {
  char *rest, *word = strtok_r(line, " \n", &rest);
  if (word == NULL || strlen(word) >= sizeof attempt->entry) return -1;
  memset(attempt, 0, sizeof *attempt);
  strcpy(attempt->entry, word);
  word = strtok_r(NULL, " \n", &rest);
  if (word == NULL) return -1;
  attempt->number = strtol(word, NULL, 0);
  for (int i = 0; i < MOST_ARGUMENTS && (word = strtok_r(NULL, " \n", &rest)) != NULL; i++) attempt->arguments[i] = (long)strtoull(word, NULL, 0);
  return 0;
}

int main(void) {
  char *line = NULL;
  size_t size = 0;
  struct attempt attempt;
  while (getline(&line, &size, stdin) >= 0) {
    if (read_attempt(line, &attempt) < 0) return fputs("attempt-calls: not a line of input\n", stderr), 2;
    fflush(stdout);
    pid_t child = fork();
    if (child < 0) return perror("fork"), 70;
    if (child == 0) attempt_and_exit(&attempt);
    int status;
    if (waitpid(child, &status, 0) < 0) return perror("wait"), 70;
    if (WIFSIGNALED(status)) printf("signal:%d\n", WTERMSIG(status));
    else if (WEXITSTATUS(status) == 0) puts("ok");
    else printf("errno:%d\n", WEXITSTATUS(status));
  }
  free(line);
  return 0;
}
