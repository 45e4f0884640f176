/* What a keeper tells the warden, one datagram each, and what a program tells its keeper until it runs. */
#ifndef GLOVEBOX_REPORT_H
#define GLOVEBOX_REPORT_H

#include <stdint.h>

#include "run.h"

/* By BORN a program in a liner shows its number: the kernel tells whoever hears it which that is there. */
enum report_kind { REPORT_STARTED = 1, REPORT_FAILED = 2, REPORT_EXITED = 3, REPORT_GATED = 4, REPORT_BORN = 5 };
/* AT_GATE is no failure: the program waits for its release. */
enum failure_stage { AT_GATE = 0, STAGE_CWD = 1, STAGE_EXEC = 2, STAGE_SET_UP = 3, STAGE_CONNECT = 4 };

struct failure {
  uint32_t stage, error;
  char text[200];
};

/* Beside reports a liner's first process sends one `struct doors`, with their descriptors. */
struct report {
  uint32_t kind;
  int32_t pid;
  struct failure failure;
  struct ending ending;
};

/* Fills in errno and `verb object`. */
void failure_note(struct failure *failure, const char *verb, const char *object);

#endif
