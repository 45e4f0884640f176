/* Forks in every branch as fast as the kernel lets it, by the call itself, and never ends. */
#include <sys/syscall.h>
#include <unistd.h>

int main(void)
{
  for (;;) syscall(SYS_clone, 17 /* SIGCHLD */, 0, 0, 0, 0);
}
