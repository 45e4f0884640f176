/*
 * Loads a filter the way a guest gets it, then
 *   exec PROGRAM [ARG]...   becomes that program
 *   try NAME|NUMBER...      attempts each call with zero arguments in a child of its own and prints "name verdict"
 *   try-i386 NAME|NUMBER... the same through the 32-bit entry point
 *   try-x32 NUMBER...       the same with the x32 bit
 * A verdict is ok, an errno as a number, or the signal that ended the child. `-` instead of a filter's file loads none.
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static void fail(const char *what) {
  perror(what);
  exit(70);
}

static void load_filter(const char *path) {
  static struct sock_filter code[4096];
  int fd = open(path, O_RDONLY);
  ssize_t length = fd < 0 ? -1 : read(fd, code, sizeof code);
  if (length <= 0) fail(path);
  close(fd);
  struct sock_fprog program = {.len = (unsigned short)((size_t)length / sizeof *code), .filter = code};
  if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) < 0) fail("load filter");
}

static void drop(const char *filter) {
  if (geteuid() == 0 && (setgroups(0, NULL) < 0 || setgid(65534) < 0 || setuid(65534) < 0)) fail("drop");
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0) fail("no_new_privs");
  if (strcmp(filter, "-") != 0) load_filter(filter);
}

static long enter_i386(long number) {
#ifdef __x86_64__
  long result;
  __asm__ volatile("int $0x80" : "=a"(result) : "a"(number), "b"(0), "c"(0), "d"(0), "S"(0), "D"(0) : "memory", "r8", "r9", "r10", "r11");
  return result;
#else
  return -ENOSYS * (number > -2);
#endif
}

static long enter(const char *how, long number) {
  if (strcmp(how, "try-i386") == 0) return enter_i386(number);
  if (strcmp(how, "try-x32") == 0) number |= 0x40000000;
  long result = syscall(number, 0, 0, 0, 0, 0, 0);
  return result < 0 ? -errno : result;
}

static long number_of(const char *how, const char *name) {
  if (name[0] >= '0' && name[0] <= '9') return atol(name);
  return seccomp_syscall_resolve_name_arch(strcmp(how, "try-i386") == 0 ? SCMP_ARCH_X86 : seccomp_arch_native(), name);
}

/* -1 is what libseccomp says to a stranger, less than that to a call of another architecture. */
static void attempt(const char *filter, const char *how, const char *name) {
  long number = number_of(how, name);
  if (number < 0) return (void)printf("%s unknown\n", name);
  fflush(stdout);
  pid_t child = fork();
  if (child < 0) fail("fork");
  if (child == 0) {
    drop(filter);
    long result = enter(how, number);
    _exit(result < 0 && result > -250 ? (int)-result : 0);
  }
  int status;
  if (waitpid(child, &status, 0) < 0) fail("wait");
  if (WIFSIGNALED(status)) printf("%s signal:%d\n", name, WTERMSIG(status));
  else if (WEXITSTATUS(status) == 0) printf("%s ok\n", name);
  else printf("%s errno:%d\n", name, WEXITSTATUS(status));
}

int main(int argc, char **argv) {
  if (argc < 4) return fputs("usage: under-filter FILTER|- exec|try|try-i386|try-x32 WORD...\n", stderr), 2;
  if (strcmp(argv[2], "exec") == 0) {
    drop(argv[1]);
    execvp(argv[3], argv + 3);
    fail(argv[3]);
  }
  for (int i = 3; i < argc; i++) attempt(argv[1], argv[2], argv[i]);
  return 0;
}
