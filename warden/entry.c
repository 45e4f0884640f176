/*
 * A thread that puts itself into a group of cgroups of version 1 waits for nobody; another that puts it there waits until every processor of the machine has taken
 * note, which took 9 ms of the start of a cell.
 */
#include "entry.h"

#include <errno.h>
#include <sched.h>
#include <unistd.h>

#include "die.h"

void entry_make(const struct arguments *arguments)
{
  for (size_t i = 0; i < arguments->enter_count; i++) {
    errno = EIO;
    if (write(arguments->enters[i], "0", 1) != 1) die("enter", "a group of the cell");
    close(arguments->enters[i]);
  }
  /* What it is in by now is all that the cell ever sees of groups. */
  if (arguments->enter_count && !arguments->subreaper && unshare(CLONE_NEWCGROUP) < 0) die("create", "cgroup namespace");
}
