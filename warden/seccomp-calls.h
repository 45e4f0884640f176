#ifndef GLOVEBOX_SECCOMP_CALLS_H
#define GLOVEBOX_SECCOMP_CALLS_H

#include <stdint.h>

/* Answers of find_call() that are no system call. */
enum { CALL_UNKNOWN = -1, CALL_ABSENT = -2, CALL_FOREIGN = -3 };

/*
 * The number that libseccomp wants for a call given by name or by number when it compiles for `arch` (an SCMP_ARCH_ token).
 * CALL_ABSENT: the name is a real call, but this architecture has none.
 * CALL_FOREIGN: the call exists, but libseccomp does not know it and can then only compile it for the architecture it runs on.
 */
int find_call(uint32_t arch, const char *name);

/* The number that a call has on `arch` itself, or one of the answers above. */
int call_number(uint32_t arch, const char *name);

#endif
