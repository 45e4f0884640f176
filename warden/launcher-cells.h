/* The cells of a launcher that serves: what was told of each, and how it is launched. */
#ifndef GLOVEBOX_LAUNCHER_CELLS_H
#define GLOVEBOX_LAUNCHER_CELLS_H

#include <stdint.h>
#include <sys/types.h>

#include "launcher-copy.h"

enum { MOST_STREAMS = 8, FEWEST_STREAMS = 3 };
enum event { LAUNCHED = 1, EXITED = 2, KILLED = 3, REFUSED = 4 };

/* One that is being told, or runs. */
struct cell {
    struct cell *next;
    uint32_t id;
    pid_t pid;
    int stream[MOST_STREAMS];
    /* 0 until it is known what to launch. */
    uint32_t streams;
    char *words;
    uint32_t length;
};

void *allocate(size_t bytes);
/* Where it is linked, or would be. */
struct cell **find_cell(struct cell **cells, uint32_t id);
/* The same, made when there is none. */
struct cell *cell_of(struct cell **cells, uint32_t id);
/* Quiet about none. */
void forget_cell(struct cell **at);
/* Its owner. */
void tell(uint32_t id, enum event event, int value);

/* What cells have of their server. */
struct service {
    /* The server's own arguments, after the one that made it a server. */
    char **values;
    /* Of the runtime that was asked for last. */
    struct program_copy copy;
};

/* Once it is known what to launch, and all its streams are there. */
void launch_when_complete(struct cell **cells, struct cell *cell, struct service *service);

#endif
