/* The one line the warden says before it ends because a step failed. */
#ifndef GLOVEBOX_DIE_H
#define GLOVEBOX_DIE_H

enum { DIE_STATUS = 70 };

/* Writes `warden: verb object: errno text` and exits. */
_Noreturn void die(const char *verb, const char *object);

#endif
