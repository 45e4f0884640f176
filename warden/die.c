#include "die.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

_Noreturn void die(const char *verb, const char *object)
{
  dprintf(2, "warden: %s %s: %s\n", verb, object, strerror(errno));
  _exit(DIE_STATUS);
}
