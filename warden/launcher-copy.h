/* Copies of programs in memory, which a server keeps from one cell to the next. */
#ifndef GLOVEBOX_LAUNCHER_COPY_H
#define GLOVEBOX_LAUNCHER_COPY_H

#include <stdbool.h>
#include <sys/stat.h>

struct program_copy {
    bool made;
    int fd;
    /* Of which file, as it was then. */
    struct stat original;
};

/* The descriptor of a copy of what is at the path by now, sealed; -1 where there can be none. It is the copy's until another is asked for. */
int copy_program(struct program_copy *copy, const char *path);

#endif
