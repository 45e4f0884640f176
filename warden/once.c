/*
 * Until a program has become another it is the warden's file that /proc/self/exe leads to, and where the kernel cannot make that mount noexec any more, a guest could start
 * it again. So the warden becomes a copy of itself in memory, and takes from that the right to be executed, which nobody can give back: the copy is root's, and guests
 * that are root have no name for it but the one through their own /proc.
 */
#include "once.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "die.h"

static const char OWN_FILE[] = "/proc/self/exe";

static void copy(int from, int to)
{
  char piece[65536];
  ssize_t got;
  while ((got = read(from, piece, sizeof piece)) > 0)
    if (write(to, piece, (size_t)got) != got) die("copy", "the warden");
  if (got < 0) die("read", "the warden");
}

static _Noreturn void become_copy(char **argv, char **envp)
{
  int from = open(OWN_FILE, O_RDONLY | O_CLOEXEC), to = memfd_create("warden", MFD_CLOEXEC);
  if (from < 0 || to < 0) die("open", "the warden");
  copy(from, to);
  if (fchmod(to, 0500) < 0) die("set mode of", "the warden");
  /* The copy knows itself by it. */
  argv[0] = "";
  syscall(SYS_execveat, to, "", argv, envp, AT_EMPTY_PATH);
  die("execute", "the warden");
}

static bool is_among(char **argv, const char *wanted)
{
  while (*argv && strcmp(*argv, wanted)) argv++;
  return *argv;
}

void once(char **argv, char **envp)
{
  if (!is_among(argv, "--once")) return;
  if (**argv) become_copy(argv, envp);
  if (chmod(OWN_FILE, 0) < 0) die("set mode of", "the warden");
}

void await_engine(char **argv)
{
  char word;
  if (!is_among(argv, "--await")) return;
  errno = EPIPE;
  if (read(0, &word, 1) != 1) die("hear", "the engine");
}
