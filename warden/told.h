/* What the kernel of the cell says, where nobody outside can ask it: texts of its /proc as they are, for the engine to take apart. */
#ifndef GLOVEBOX_TOLD_H
#define GLOVEBOX_TOLD_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { TOLD_MOST = 32768, TOLD_OF_PROGRAM_MOST = 8192 };

/* What is known of the cell before the warden is under its filter. */
struct told {
  size_t length;
  int status; /* its own, to be read when all is dropped; closed on exec */
  uint8_t text[TOLD_MOST];
};

/* The kernel's version, the beginning of its log, the mounts and the interfaces, each with a NUL at the end. Once the mounts are made. Dies where it cannot. */
struct told *told_begin(void);
/* Adds the warden's status, as it is then. */
void told_finish(struct told *told);
/* Of a program at its gate: its status and its limits. Answers the length. */
size_t told_of_program(pid_t pid, uint8_t *text);

#endif
