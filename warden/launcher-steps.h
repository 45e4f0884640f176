/* What a cell is built of, as it is told to bwrap and understood here. */
#ifndef GLOVEBOX_LAUNCHER_STEPS_H
#define GLOVEBOX_LAUNCHER_STEPS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum {
    MOST_STEPS = 1024,
    MOST_VARIABLES = 8,
    MOST_VARIABLE_BYTES = 256,
};

struct options;

enum step_kind { STEP_BIND, STEP_SYMLINK, STEP_PROC, STEP_TMPFS, STEP_FOLDER, STEP_FILE };

struct step {
    enum step_kind kind;
    /* Of a bind: the flags that it and every mount below it get. */
    uint64_t flags;
    /* Of a file. */
    mode_t mode;
    int fd;
    /* Of a bind where it is now, of a link what it says. */
    const char *source;
    const char *target;
};

struct steps {
    /* Whether it was told to unshare everything. */
    bool unshares;
    const char *hostname;
    uint64_t capabilities;
    size_t variables;
    char variable[MOST_VARIABLES][MOST_VARIABLE_BYTES];
    size_t count;
    struct step list[MOST_STEPS];
    char **program;
};

/* False when there is a word that is not known, for nothing that was asked for is left out, or no program follows. */
bool parse_steps(struct steps *steps, char **words);
/* In the cell's own mount namespace: the root that the steps make is `/` afterwards, and nothing else can be reached. */
void take_steps(const struct steps *steps);
/* In the staged mount namespace: the same root at NEW_ROOT, made for the id of `drop_to` with a place for each gift, and left there. */
void assemble_root(const struct steps *steps, const struct options *options);

#endif
