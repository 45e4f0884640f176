/*
 * The keeper of a liner whose program was forked from a zygote, as a program of its own: without it each run would have a second copy of an interpreter's memory,
 * only to wait in. It is executed by the liner's first process once that has forked the program, and keeps watch as any keeper does; its place is made already, and it
 * finds there what keeper-alone.h says.
 *
 * It has no libc, whose beginning would take longer than all the rest: what of one is called is below.
 */
#include "keeper-alone.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "keeper-watch.h"

#if defined(__x86_64__)
__asm__(".globl _start\n_start:\n  xor %ebp, %ebp\n  mov %rsp, %rdi\n  and $-16, %rsp\n  call keeper_begin\n");

static long call(long number, const long *with)
{
  register long fourth __asm__("r10") = with[3];
  register long fifth __asm__("r8") = with[4];
  register long sixth __asm__("r9") = with[5];
  long result;
  __asm__ volatile("syscall" : "=a"(result) : "a"(number), "D"(with[0]), "S"(with[1]), "d"(with[2]), "r"(fourth), "r"(fifth), "r"(sixth) : "rcx", "r11", "memory");
  return result;
}
#elif defined(__aarch64__)
__asm__(".globl _start\n_start:\n  mov x29, xzr\n  mov x30, xzr\n  mov x0, sp\n  b keeper_begin\n");

static long call(long number, const long *with)
{
  register long which __asm__("x8") = number;
  register long first __asm__("x0") = with[0];
  register long second __asm__("x1") = with[1];
  register long third __asm__("x2") = with[2];
  register long fourth __asm__("x3") = with[3];
  register long fifth __asm__("x4") = with[4];
  register long sixth __asm__("x5") = with[5];
  __asm__ volatile("svc 0" : "+r"(first) : "r"(which), "r"(second), "r"(third), "r"(fourth), "r"(fifth), "r"(sixth) : "memory");
  return first;
}
#else
#error "a keeper that is alone knows x86_64 and aarch64"
#endif

int *__errno_location(void)
{
  /* Where the headers of libc expect it. */
  static int number;
  return &number;
}

long syscall(long number, ...)
{
  enum { LOWEST = -4095 };
  long with[6];
  va_list given;
  va_start(given, number);
  for (int i = 0; i < 6; i++) with[i] = va_arg(given, long);
  va_end(given);
  long result = call(number, with);
  if (result >= 0 || result < LOWEST) return result;
  errno = (int)-result;
  return -1;
}

void *memset(void *to, int byte, size_t length)
{
  for (unsigned char *at = to; length > 0; length--) *at++ = (unsigned char)byte;
  return to;
}

void *memcpy(void *restrict to, const void *restrict from, size_t length)
{
  const unsigned char *next = from;
  for (unsigned char *at = to; length > 0; length--) *at++ = *next++;
  return to;
}

void explicit_bzero(void *bytes, size_t length)
{
  memset(bytes, 0, length);
  __asm__ volatile("" : : "r"(bytes) : "memory");
}

ssize_t read(int fd, void *bytes, size_t length)
{
  return syscall(SYS_read, (long)fd, bytes, length, 0L, 0L, 0L);
}

ssize_t send(int socket, const void *bytes, size_t length, int flags)
{
  return syscall(SYS_sendto, (long)socket, bytes, length, (long)flags, 0L, 0L);
}

ssize_t recv(int socket, void *bytes, size_t length, int flags)
{
  return syscall(SYS_recvfrom, (long)socket, bytes, length, (long)flags, 0L, 0L);
}

/* Only without a patience is it called here. */
int poll(struct pollfd *fds, nfds_t count, int timeout)
{
  (void)timeout;
  return (int)syscall(SYS_ppoll, fds, count, 0L, 0L, 0L, 0L);
}

int waitid(idtype_t type, id_t id, siginfo_t *info, int options)
{
  return (int)syscall(SYS_waitid, (long)type, (long)id, info, (long)options, 0L, 0L);
}

pid_t waitpid(pid_t pid, int *status, int options)
{
  return (pid_t)syscall(SYS_wait4, (long)pid, status, (long)options, 0L, 0L, 0L);
}

int close(int fd)
{
  return (int)syscall(SYS_close, (long)fd, 0L, 0L, 0L, 0L, 0L);
}

_Noreturn void _exit(int status)
{
  for (;;) syscall(SYS_exit_group, (long)status, 0L, 0L, 0L, 0L, 0L);
}

static void set_own(long option, long value)
{
  if (syscall(SYS_prctl, option, value, 0L, 0L, 0L, 0L) < 0) _exit(1);
}

static pid_t number_in(const char *digits)
{
  pid_t number = 0;
  for (; *digits >= '0' && *digits <= '9'; digits++) number = number * 10 + (*digits - '0');
  return number;
}

/* What is on the stack of a program that begins: how many arguments, and they. */
_Noreturn __attribute__((used)) void keeper_begin(const uintptr_t *stack)
{
  const char *const *arguments = (const char *const *)(stack + 1);
  /* Whoever asks only whether it can be executed. */
  if (stack[0] != KEEPER_ALONE_ARGUMENTS) _exit(stack[0] == 1 ? 0 : 1);
  /* Its file cannot be read, and so neither can its memory since it began; this is so that it depends on nothing else. */
  set_own(PR_SET_DUMPABLE, 0);
  set_own(PR_SET_PDEATHSIG, SIGKILL);
  set_own(PR_SET_NAME, (long)"keeper");
  const struct watch watch = { .link = KEEPER_ALONE_LINK, .status = KEEPER_ALONE_STATUS, .program = number_in(arguments[1]), .gate = *arguments[2] == KEEPER_ALONE_GATE, .liner = true };
  keeper_watch(&watch);
}
