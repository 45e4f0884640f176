/* A warden whose file nobody can start again; see once.c. */
#ifndef GLOVEBOX_ONCE_H
#define GLOVEBOX_ONCE_H

/* With --once among the arguments: returns in a copy of the program that cannot be executed. */
void once(char **argv, char **envp);
/* With --await among the arguments: nothing is touched before the engine has said a word, one byte, that all around the cell is as it is to be. */
void await_engine(char **argv);

#endif
