/* What the parts of the launcher share. */
#ifndef GLOVEBOX_LAUNCHER_H
#define GLOVEBOX_LAUNCHER_H

#define _GNU_SOURCE

#include <stdbool.h>
#include <sys/types.h>

enum {
    LAUNCHER_FAILED = 71,
    /* Descriptors named on the command line lie below this; the launcher's own working ones above. */
    FIRST_OWN_FD = 256,
    MOST_JOINS = 16,
    MOST_OPENS = 16,
    MOST_STAGES = 256,
    MOST_MOUNTS = 64,
    MOST_HIDES = 64,
};

struct open_request {
    bool folder;
    bool reads;
    int fd;
    const char *path;
};

struct stage_request {
    bool veil;
    const char *name;
    const char *source;
};

/* A source that the owner opened and checked: bound by that descriptor, whatever its path leads to by now. */
struct mount_request {
    int fd;
    const char *name;
    bool writable;
    /* Whether the source's owner is to be `owner` in the cell, a host id; everyone else is then nobody there. */
    bool mapped;
    unsigned owner;
    /* On the disk. */
    unsigned group;
};

struct pass_request {
    int inherited;
    int wanted;
};

struct give_request {
    const char *name;
    bool writable;
    const char *place;
};

struct show_request {
    const char *folder;
    const char *path;
};

struct layer_request {
    const char *target;
    const char *source;
    int tree;
    /* What not everyone may read there, by its path below the source. */
    size_t hiddens;
    char **hidden;
};

struct options {
    pid_t self;
    pid_t parent;
    size_t joins;
    const char *join[MOST_JOINS];
    /* The same by descriptors, which somebody else opened. */
    size_t enters;
    int enter[MOST_JOINS];
    size_t opens;
    struct open_request open[MOST_OPENS];
    size_t stages;
    struct stage_request stage[MOST_STAGES];
    size_t mounts;
    struct mount_request mount[MOST_MOUNTS];
    size_t passes;
    struct pass_request pass[MOST_MOUNTS];
    /* A root that is writable all over, in one tmpfs of this size. */
    bool root;
    unsigned root_base;
    const char *root_bytes;
    const char *root_inodes;
    size_t layers;
    struct layer_request layer[MOST_STAGES];
    bool devices;
    bool map;
    unsigned map_base;
    unsigned map_count;
    int info_fd;
    int block_fd;
    /* Where the mapper is asked for a filter; -1 when nobody asks. */
    int inspect_fd;
    bool drop;
    unsigned drop_to;
    /* Whether the owner says by a byte on stdin that the files to join and open are there. */
    bool awaits;
    /* Whether PROGRAM is bwrap and what it is told is to be done here, where the kernel can. */
    bool builds;
    /* Whether PROGRAM is a container runtime, and what stands before it words about the cell's root; the cell's monitor stays with the id of `drop_to`. */
    bool uses_runtime;
    /* Whether the runtime is started in a user namespace in which whoever starts this is root, because it is not here. */
    bool rootless;
    /* Whether the root, and the devices with it, are read-only before the runtime sees them. */
    bool closed;
    /* What the runtime is to be started from a copy of, where there is one; that is -1 when there is none. */
    const char *copied;
    int copy;
    size_t gives;
    struct give_request give[MOST_MOUNTS];
    size_t shows;
    struct show_request show[MOST_HIDES];
    size_t hides;
    const char *hide[MOST_HIDES];
    size_t fixes;
    const char *fix[MOST_HIDES];
    /* Whether this is the first process of a container, in which the cell is built with this one id. */
    bool within;
    /* Whether another is the first process of the container, and stays where that is. */
    bool apart;
    unsigned within_id;
    /* The first process of a container that the mounts are put into, and whose it must be; 0 when they are not. */
    pid_t put_into;
    unsigned put_owner;
    char **program;
    /* Of a runtime: its variables besides PATH, which stand before its own words. */
    char **variables;
};

/* The ends of whoever writes the id maps: where it is told of whom, and where it lets that go on. */
struct mapper {
    int info;
    int block;
};

/* Prints `launcher: verb object: errno text` and exits with LAUNCHER_FAILED. */
_Noreturn void fail(const char *verb, const char *object);

void parse_options(struct options *options, int argc, char **argv);

/* Becomes the program that the arguments name. `copy` is what --copied names, in memory; -1 when nobody keeps one. */
_Noreturn void launch(int argc, char **argv, int copy);
/* Launches what the owner asks for, as long as that lives; told by the name of a socket and the owner's pid. */
_Noreturn void serve(char **values);
void leave_session(void);
/* To be called after the ids are dropped. */
void die_with_parent(const struct options *options);
/* Out of the mount namespace in which was staged: nobody is to wait for its end when the monitor ends. */
void go_home(int home);

/* Takes what was inherited by name and closes the rest from 3 up. */
void arrange_descriptors(struct options *options);
void open_for_program(const struct options *options);
void close_inherited_from(unsigned first);
/* From 3 up. */
void close_all_but_one(int kept);
/* Whether a file to join or open lies where staging covers it. */
bool has_groups_below_tmp(const struct options *options);
/* Moves a descriptor of the launcher's own out of the way of the numbers on the command line; closed on exec. */
int move_own(int fd);
void place_descriptor(int fd, int wanted);

void join_cgroups(const struct options *options);
/* Puts every staged source below /tmp of a mount namespace of its own. */
void stage_sources(const struct options *options);

/* A user namespace nobody lives in, for its maps: on-disk ids from `uid` and `gid` up become host ids from `host` up, `count` of each. */
struct id_map {
    unsigned uid, gid, host, count;
};
int open_id_map(const struct id_map *map);
/* Whether the kernel gives a detached mount those ids; errno says why not. */
bool map_mount(int tree, int id_map);

/* A detached copy of the one mount at a descriptor and path (an empty one for the descriptor itself), without what is mounted below. */
int clone_mount(int fd, const char *path, const char *name);
void attach_mount(int tree, const char *to, const char *name);
void make_mount_point(bool folder, const char *path);
bool is_folder(int source, const char *path);

/* While the sources' mounts are still those of this namespace. */
void clone_mounts(const struct options *options, int *trees);
/* To NAME in the folder each. */
void attach_mounts(const struct options *options, const int *trees, const char *folder);
/* Of the options, into the container of a process; PROGRAM is the folder there. */
_Noreturn void put_mounts(struct options *options);

/* Copies what will be laid under the writable root, and looks for what must not be seen of it. */
void clone_layers(struct options *options);
/* The writable root at /tmp/disk/root. */
void build_root(const struct options *options);
void find_private(struct layer_request *layer);
/* Marks those files as deleted in the layer that will be laid over. */
void hide_private(const struct layer_request *layer, const char *upper);

/* Answers what the owner asks of /proc, as long as that asks. */
_Noreturn void tell_owner(void);

/* The mount namespace and root of a process that is in another than ours. */
void enter_mounts_of(const char *pid);
/* Closes what a container engine has mounted for a process but its disk, told by process and path. */
_Noreturn void seal_mounts(char **values);
/* Changes the size of a live cell's disk, told by process, bytes, inodes and path. */
_Noreturn void resize_disk(char **values);

/* Forks the process that writes the id maps of the cell's first process once it exists, and then reads the filter of one process. */
struct mapper fork_mapper(const struct options *options);
/* The same without the maps; 0 when nobody asks. */
pid_t fork_inspector(const struct options *options);
bool write_maps(pid_t child, const struct options *options);

/* Where a cell's root is built, in the staged /tmp. */
#define NEW_ROOT "/tmp/.root"

struct steps;
/* Whether all that bwrap is told is understood, and the kernel has what it takes. */
bool can_build(struct steps *steps, const struct options *options);
/* Of everything that outlives the drop of the ids, only what it takes to make the cell's namespaces, to write its maps, and to leave where it was staged. */
void keep_rights_of_builder(void);
/* `home` is the mount namespace that the launcher was started in. */
_Noreturn void build_cell(const struct options *options, const struct steps *steps, int home);

/* What a container runtime is started with, beside what the options say. */
struct runtime_start {
    int program;
    int home;
    pid_t inspector;
};
/* Takes the words about the root; what is left of PROGRAM is the runtime. */
void find_runtime(struct steps *steps, struct options *options);
_Noreturn void start_runtime(const struct options *options, const struct steps *steps, struct runtime_start cell);
/* The same without rights: in a user namespace of the runtime's own. */
_Noreturn void start_rootless(const struct options *options, const struct steps *steps, int program);
/* What the runtime sees and is to leave as it is. */
void make_fixed(const struct options *options);
_Noreturn void become_runtime(const struct options *options, int program);
/* Ends when nothing of the cell is left. */
_Noreturn void monitor_runtime(pid_t runtime, pid_t inspector);
/* In a user namespace that was just made: the one id that this had outside is `inside`. */
struct own_ids {
    uid_t uid;
    gid_t gid;
};
void map_own(unsigned inside, struct own_ids outside);

/* Of the first process in its namespaces, once it has an id there: makes the root and becomes the program. */
_Noreturn void enter_cell(const struct steps *steps);
/* Keeps no right, and no descriptor but the first three. */
_Noreturn void monitor_cell(pid_t first);
_Noreturn void build_within(struct options *options);
/* Waits for the owner where it is told to, and opens and joins what that made. */
void enter_groups(struct options *options);

#endif
