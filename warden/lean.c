/*
 * Three processes, of which two have the zygote's memory:
 *
 *   zygote   waits, stopped by the kernel (CLONE_VFORK), until
 *   first    process of the liner, which is in the zygote's own memory (CLONE_VM) with a stack of its own, has made the liner, forked
 *   program  the only copy, and executed the keeper: keeper-alone.c.
 *
 * The first process may be killed at any time, and what it leaves half done in memory the zygote goes on with. So it changes nothing there but its stack and
 * `struct lean`: it allocates nothing, and START was parsed before. Only the fork itself is more than a call of the kernel, since libraries have a say in it; a zygote
 * whose first process ended in the middle of that ends too, and another is started in its place.
 */
#include "lean.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "caps.h"
#include "fds.h"
#include "keeper-alone.h"
#include "liner.h"

enum { STACK_BYTES = 65536, EXECUTABLE = 0x10 /* MFD_EXEC */, ONLY_EXECUTE = 0111 };

struct lean {
  int image; /* the keeper's file */
  uint8_t *stack; /* of a first process */
  void *back[5]; /* from there, in the program */
  int status;
  int32_t first; /* its number as the zygote sees it: written by the kernel before it begins */
  volatile bool answered, forking;
  struct brood *brood;
  struct plan *plan;
};

__asm__(".pushsection .rodata\nkeeper_image:\n.incbin \"" KEEPER_IMAGE "\"\nkeeper_image_end:\n.popsection\n");
extern const uint8_t keeper_image[] __attribute__((visibility("hidden"))), keeper_image_end[] __attribute__((visibility("hidden")));

/* Nobody can read it, its owner neither, so that the kernel lets nobody look into what executes it, nor write to it any more. */
static int image_file(void)
{
  const size_t length = (size_t)(keeper_image_end - keeper_image);
  int fd = (int)syscall(SYS_memfd_create, "keeper", MFD_CLOEXEC | MFD_ALLOW_SEALING | EXECUTABLE);
  /* Before Linux 6.3 all are, and the flag is unknown. */
  if (fd < 0 && errno == EINVAL) fd = (int)syscall(SYS_memfd_create, "keeper", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (fd < 0) return -1;
  const bool whole = write(fd, keeper_image, length) == (ssize_t)length;
  if (whole && fchmod(fd, ONLY_EXECUTE) == 0 && fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW) == 0) return fd;
  close(fd);
  return -1;
}

static void execute(int image, const char *const *arguments)
{
  const char *const nothing[] = { NULL };
  syscall(SYS_execveat, image, "", arguments, nothing, AT_EMPTY_PATH);
}

static int try_keeper(void *given)
{
  const char *const arguments[] = { "keeper", NULL };
  execute(((struct lean *)given)->image, arguments);
  _exit(1);
}

static bool can_execute(struct lean *lean)
{
  int status = -1;
  pid_t pid = clone(try_keeper, lean->stack + STACK_BYTES, CLONE_VM | CLONE_VFORK | SIGCHLD, lean);
  while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR) { }
  return pid > 0 && status == 0;
}

struct lean *lean_make(void)
{
  const int kind = MAP_PRIVATE | MAP_ANONYMOUS;
  struct lean *lean = mmap(NULL, sizeof *lean, PROT_READ | PROT_WRITE, kind, -1, 0);
  if (lean == MAP_FAILED) return NULL;
  lean->stack = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE, kind | MAP_STACK, -1, 0);
  lean->image = image_file();
  if (lean->stack != MAP_FAILED && lean->image >= 0 && can_execute(lean)) return lean;
  if (lean->image >= 0) close(lean->image);
  return NULL;
}

static int move_up(const struct plan *plan, int fd)
{
  int moved = fcntl(fd, F_DUPFD_CLOEXEC, KEEPER_ALONE_STATUS + 1);
  if (moved < 0) keeper_give_up(plan, "move", "a descriptor");
  return moved;
}

/* Without any capability, and with no descriptor but the two that it uses. */
static _Noreturn void become_keeper(const struct lean *lean, int status, pid_t program)
{
  const struct plan *plan = lean->plan;
  char number[16];
  const char *const arguments[] = { "keeper", number, plan->start->gate ? (const char[]){ KEEPER_ALONE_GATE, 0 } : "", NULL };
  struct plan moved = *plan;
  snprintf(number, sizeof number, "%d", program);
  moved.link = move_up(plan, plan->link);
  const int image = move_up(&moved, lean->image);
  status = move_up(&moved, status);
  if (caps_clear_ambient() < 0 || caps_set(0) < 0) keeper_give_up(&moved, "drop", "capabilities of the keeper");
  if (dup2(moved.link, KEEPER_ALONE_LINK) < 0 || dup2(status, KEEPER_ALONE_STATUS) < 0) keeper_give_up(&moved, "place", "descriptors of the keeper");
  for (int fd = 0; fd < KEEPER_ALONE_LINK; fd++) close(fd);
  const struct fds_kept kept = { .fds = { KEEPER_ALONE_LINK, KEEPER_ALONE_STATUS, image }, .count = 3 };
  moved.link = KEEPER_ALONE_LINK;
  if (fds_close_all_but(&kept) == 0) execute(image, arguments);
  keeper_give_up(&moved, "execute", "the keeper");
}

static int be_first(void *given)
{
  struct lean *lean = given;
  const struct plan *plan = lean->plan;
  int status[2];
  /* The zygote cannot: it waits, and whoever asked is needed for what comes next. */
  lean->answered = true;
  brood_answer(lean->brood->socket, lean->first);
  keeper_take_places(plan);
  liner_furnish(plan, &lean->brood->lining);
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, status) < 0) keeper_give_up(plan, "make", "status socket");
  lean->forking = true;
  pid_t program = fork();
  lean->forking = false;
  if (program < 0) keeper_give_up(plan, "fork", "the program");
  if (program > 0) become_keeper(lean, status[0], program);
  close(status[0]);
  lean->status = status[1];
  __builtin_longjmp(lean->back, 1);
}

/*
 * The kernel writes into memory of libc's on which processor a thread is. That is for each thread to ask for, a process in another's memory has not, and neither
 * has its fork.
 */
static void ask_for_processor(void)
{
  extern const ptrdiff_t __rseq_offset __attribute__((weak));
  extern const unsigned int __rseq_size __attribute__((weak));
  enum { LEAST = 32, FEATURES = 27 /* AT_RSEQ_FEATURE_SIZE */ };
#if defined(__x86_64__)
  const uint32_t mark = 0x53053053;
#else
  const uint32_t mark = 0xd428bc00;
#endif
  if (!&__rseq_offset || !&__rseq_size || !__rseq_size) return;
  const unsigned long features = (getauxval(FEATURES) + LEAST - 1) / LEAST * LEAST;
  syscall(SYS_rseq, (char *)__builtin_thread_pointer() + __rseq_offset, features > LEAST ? features : LEAST, 0, mark);
}

int lean_hatch(struct brood *brood, struct plan *plan)
{
  struct lean *lean = brood->lean;
  plan->image = lean->image;
  lean->brood = brood;
  lean->plan = plan;
  lean->answered = false;
  if (__builtin_setjmp(lean->back)) {
    ask_for_processor();
    return lean->status;
  }
  pid_t first = clone(be_first, lean->stack + STACK_BYTES, LINER_NAMESPACES | CLONE_VM | CLONE_VFORK | CLONE_PARENT | CLONE_PARENT_SETTID | SIGCHLD, lean, &lean->first);
  if (lean->forking) _exit(1);
  if (!lean->answered) brood_answer(brood->socket, first);
  /* As it was, wherever the first process ended. */
  if (prctl(PR_SET_DUMPABLE, 0) < 0) _exit(1);
  return -1;
}
