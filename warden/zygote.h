#ifndef GLOVEBOX_ZYGOTE_H
#define GLOVEBOX_ZYGOTE_H

/*
 * Serves on the socket for as long as the warden lives. Returns 0, and only in a program that is let pass its gate: with what it was told, both lists
 * ending with NULL. Less when it cannot serve.
 */
int zygote_serve(int socket, char ***argv, char ***envp);
/* The status of a program that an interrupt ended which nothing handled. */
enum { ZYGOTE_INTERRUPTED = -2 };
_Noreturn void zygote_exit(int status);

#endif
