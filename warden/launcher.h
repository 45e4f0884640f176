/* What the parts of the launcher share. */
#ifndef GLOVEBOX_LAUNCHER_H
#define GLOVEBOX_LAUNCHER_H

#define _GNU_SOURCE

#include <stdbool.h>
#include <sys/types.h>

enum {
    LAUNCHER_FAILED = 71,
    /* Descriptors named on the command line lie below this; the launcher's own working ones above. */
    FIRST_OWN_FD = 64,
    MOST_JOINS = 16,
    MOST_OPENS = 16,
    MOST_STAGES = 256,
};

struct open_request {
    int fd;
    const char *path;
};

struct stage_request {
    bool veil;
    const char *name;
    const char *source;
};

struct options {
    pid_t self;
    pid_t parent;
    size_t joins;
    const char *join[MOST_JOINS];
    size_t opens;
    struct open_request open[MOST_OPENS];
    size_t stages;
    struct stage_request stage[MOST_STAGES];
    bool devices;
    bool map;
    unsigned map_base;
    unsigned map_count;
    int info_fd;
    int block_fd;
    bool drop;
    unsigned drop_to;
    char **program;
};

/* Prints `launcher: verb object: errno text` and exits with LAUNCHER_FAILED. */
_Noreturn void fail(const char *verb, const char *object);

void parse_options(struct options *options, int argc, char **argv);

/* Closes all from 3 up, then opens what was asked for. */
void arrange_descriptors(const struct options *options);
/* Moves a descriptor of the launcher's own out of the way of the numbers on the command line; closed on exec. */
int move_own(int fd);
void place_descriptor(int fd, int wanted);

void join_cgroups(const struct options *options);
/* Puts every staged source below /tmp of a mount namespace of its own. */
void stage_sources(const struct options *options);
/* Forks the process that writes the id maps of bwrap's child once it exists. */
void fork_mapper(const struct options *options);

#endif
