#include "report.h"

#include <errno.h>
#include <stdio.h>

void failure_note(struct failure *failure, const char *verb, const char *object)
{
  failure->error = (uint32_t)errno;
  snprintf(failure->text, sizeof failure->text, "%s %s", verb, object);
}
