/*
 * A program that forks without end can be faster than whoever kills what it made, where the dead do not count as processes any more. So there is a way to keep all guests
 * from making another for a moment: the bound on their number becomes 0. Whoever could write that file could also lift the bound, and a kernel that shows descriptors to
 * everybody would show it in every process that is forked from the warden, until that has closed it. So a process of its own holds it, which forks nobody and which /proc does
 * not show; the warden only has a socket to it, and a socket cannot be opened by a path.
 */
#include "brake.h"

#include <errno.h>
#include <grp.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "caps.h"
#include "die.h"
#include "fds.h"

enum { HOLD = 'h', LET_GO = 'l' };

static _Noreturn void serve(const struct brake_order *order, int socket)
{
  char word;
  struct fds_kept kept = { .fds = { order->file, socket }, .count = 2 };
  prctl(PR_SET_NAME, "brake");
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (setgroups(0, NULL) < 0 || setresgid(order->gid, order->gid, order->gid) < 0 || setresuid(order->uid, order->uid, order->uid) < 0) _exit(1);
  if (caps_set(0) < 0 || prctl(PR_SET_DUMPABLE, 0) < 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || fds_close_all_but(&kept) < 0) _exit(1);
  for (int fd = 0; fd < 3; fd++) close(fd);
  if (send(socket, "", 1, MSG_NOSIGNAL) < 0) _exit(1);
  while (recv(socket, &word, 1, 0) == 1) {
    const char *number = word == HOLD ? "0" : order->most;
    char answer = pwrite(order->file, number, strlen(number), 0) > 0;
    if (send(socket, &answer, 1, MSG_NOSIGNAL) < 0) break;
  }
  _exit(0);
}

struct brake brake_fork(const struct brake_order *order)
{
  int ends[2];
  char word;
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0) die("make", "the brake");
  pid_t pid = fork();
  if (pid < 0) die("fork", "the brake");
  if (pid == 0) serve(order, ends[1]);
  close(ends[1]);
  close(order->file);
  errno = EPIPE;
  if (recv(ends[0], &word, 1, 0) != 1) die("start", "the brake");
  return (struct brake){ .pid = pid, .socket = ends[0] };
}

static bool ask(const struct brake *brake, char word)
{
  char done = 0;
  return brake->pid && send(brake->socket, &word, 1, MSG_NOSIGNAL) == 1 && recv(brake->socket, &done, 1, 0) == 1 && done;
}

void brake_hold(struct brake *brake)
{
  brake->held = brake->held || ask(brake, HOLD);
}

/* Asked again at the next kill, should it fail: meanwhile nobody can fork, which is the safe side. */
void brake_let_go(struct brake *brake)
{
  brake->held = brake->held && !ask(brake, LET_GO);
}
