/*
 * launcher [options] -- PROGRAM ARG…
 *
 *   --parent PID                   fail unless this is still our parent
 *   --await                        read one byte of stdin before the files of --join, --open and --open-folder are looked for, and end when none comes
 *   --join PATH                    a cgroup.procs to enter; may be repeated
 *   --enter FD                     the same by an inherited descriptor; may be repeated
 *   --open FD PATH                 opened write-only for PROGRAM at this number; may be repeated
 *   --open-folder FD PATH          the same for a folder, only to find files in it
 *   --read FD PATH                 the same for a file, read-only; may be repeated
 *   --stage NAME SOURCE            bound to /tmp/NAME in a private mount namespace; may be repeated
 *   --veil NAME SOURCE             the same with inodes of its own: a folder is overlaid there, read-only and without mounts below it
 *   --mount FD NAME MODE ID GROUP  the inherited FD bound to /tmp/NAME there, without what is mounted below it. MODE is ro or rw; ID is the host id
 *                                  that its owner becomes, or `-`; GROUP the group on the disk that becomes ID too, or `-`. Where the filesystem
 *                                  cannot do that, ro leaves it be and rw fails
 *   --pass FD WANTED               the inherited FD handed to PROGRAM at this number; may be repeated
 *   --root BASE BYTES INODES       a /tmp/disk/root that is writable all over, on one tmpfs of this size, with BASE for id 0
 *   --layer TARGET SOURCE          seen at TARGET of that root, and writable there; may be repeated
 *   --devices                      a /tmp/dev with the plain character devices, in that namespace
 *   --map BASE COUNT INFO BLOCK    id maps `0 BASE COUNT` for bwrap's child; --info-fd and --userns-block-fd are INFO and BLOCK
 *   --inspect FD                   the inherited FD on which that who writes the maps is told a pid, in digits on a line, and answers: `F` and the newest
 *                                  seccomp filter of that process, or `E` and why it cannot be read; nothing when no pid comes. Only with --map
 *   --build                        do what PROGRAM, which is bwrap, is told, instead of executing it, where all of that is known and the kernel can. Only with
 *                                  --map, --drop and --stage
 *   --drop ID                      run PROGRAM with this uid and gid and no groups
 *   --runtime ID                   what follows `--` are words of bwrap about a root, and after a second `--` a container runtime that is to start a cell with that
 *                                  root, which is made for ID, and then to exit: this stays with ID, and ends with the cell. Not with --map, --build and --drop
 *   --copied PATH                  the runtime is PATH, and started from a copy in memory where a server keeps one. Only with --runtime, and not with --rootless
 *   --closed                       the root, and the devices with it, are read-only before the runtime sees them
 *   --give NAME MODE PLACE         what was staged as NAME is ro or rw, and neither honours set-ids nor devices: the runtime binds it as it is at PLACE of the
 *                                  root, which is made for that. Only with --runtime
 *   --show FOLDER PATH             FOLDER bound over PATH where the runtime looks; may be repeated. Only with --runtime
 *   --hide PATH                    unmounted where the runtime looks; may be repeated. Only with --runtime
 *   --fix PATH                     read-only where the runtime looks; may be repeated. Only with --runtime
 *   --rootless                     the runtime is started in a user namespace in which whoever starts this is root: its ID is 0, nothing is dropped, what is hidden
 *                                  is covered. Only with --runtime, and not with --mount, --root, --devices, --give, --show and --inspect
 *   --within ID                    do what PROGRAM, which is bwrap, is told, within the container that this is the first process of, and as its first process, with
 *                                  this uid and gid inside. Only with --await, --join, --enter, --open, --open-folder, --read and --pass
 *   --apart                        with --within: not as the first process but as its child, so that whoever enters the container finds it as it was made
 *   --put PID ID                   what --mount names is bound in the container whose first process is PID, with uid ID: to NAME in its folder PROGRAM, on which
 *                                  nothing else is mounted. That is all. Only with --mount
 */
#include "launcher.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static unsigned parse_number(const char *text, unsigned most)
{
    char *end = NULL;
    errno = 0;
    unsigned long value = strtoul(text, &end, 10);
    if (errno != 0 || end == text || *end != '\0' || value > most || text[0] == '-') {
        errno = EINVAL;
        fail("parse", text);
    }
    return (unsigned)value;
}

static int parse_fd(const char *text)
{
    unsigned fd = parse_number(text, FIRST_OWN_FD - 1);
    if (fd < 3) {
        errno = EINVAL;
        fail("use descriptor", text);
    }
    return (int)fd;
}

static size_t next_index(size_t *count, size_t most, const char *option)
{
    if (*count == most) {
        errno = E2BIG;
        fail("repeat", option);
    }
    return (*count)++;
}

static void check_name(const char *name)
{
    if (name[0] == '\0' || name[0] == '.' || strchr(name, '/') != NULL || strcmp(name, "dev") == 0 || strcmp(name, "disk") == 0) {
        errno = EINVAL;
        fail("stage", name);
    }
}

static void add_stage(struct options *options, const char *option, char **values)
{
    struct stage_request request = { .veil = strcmp(option, "--veil") == 0, .name = values[0], .source = values[1] };
    check_name(request.name);
    options->stage[next_index(&options->stages, MOST_STAGES, option)] = request;
}

static void set_map(struct options *options, char **values)
{
    options->map = true;
    options->map_base = parse_number(values[0], 0xfffffffe);
    options->map_count = parse_number(values[1], 0xfffffffe);
    options->info_fd = parse_fd(values[2]);
    options->block_fd = parse_fd(values[3]);
}

static void refuse(const char *verb, const char *object)
{
    errno = EINVAL;
    fail(verb, object);
}

static void add_mount(struct options *options, char **values)
{
    struct mount_request request = { .fd = parse_fd(values[0]), .name = values[1], .writable = strcmp(values[2], "rw") == 0 };
    check_name(request.name);
    if (!request.writable && strcmp(values[2], "ro") != 0)
        refuse("understand", values[2]);
    request.mapped = strcmp(values[3], "-") != 0;
    if (request.mapped)
        request.owner = parse_number(values[3], 0xfffffffe);
    /* A map needs a group: without one of the disk's it is the cell's own, of which there are no files. */
    request.group = strcmp(values[4], "-") == 0 ? request.owner : parse_number(values[4], 0xfffffffe);
    options->mount[next_index(&options->mounts, MOST_MOUNTS, "--mount")] = request;
}

static const char *check_digits(const char *text)
{
    if (text[0] == '\0' || text[strspn(text, "0123456789")] != '\0')
        refuse("parse", text);
    return text;
}

static void set_root(struct options *options, char **values)
{
    options->root = true;
    options->root_base = parse_number(values[0], 0xfffffffe);
    options->root_bytes = check_digits(values[1]);
    options->root_inodes = check_digits(values[2]);
}

static void add_layer(struct options *options, char **values)
{
    struct layer_request request = { .target = values[0], .source = values[1] };
    if (request.target[0] != '/' || strstr(request.target, "..") != NULL)
        refuse("lay under", request.target);
    options->layer[next_index(&options->layers, MOST_STAGES, "--layer")] = request;
}

static void add_gift(struct options *options, char **values)
{
    struct give_request request = { .name = values[0], .writable = strcmp(values[1], "rw") == 0, .place = values[2] };
    check_name(request.name);
    if (!request.writable && strcmp(values[1], "ro") != 0)
        refuse("understand", values[1]);
    if (request.place[0] != '/' || request.place[1] == '\0')
        refuse("give at", request.place);
    options->give[next_index(&options->gives, MOST_MOUNTS, "--give")] = request;
}

/* The options about what is mounted, each with two values or more. */
static int take_mount_option(struct options *options, const char *name, char **values, int left)
{
    if (strcmp(name, "--stage") == 0 || strcmp(name, "--veil") == 0)
        return add_stage(options, name, values), 2;
    if (strcmp(name, "--pass") == 0) {
        struct pass_request request = { .inherited = parse_fd(values[0]), .wanted = parse_fd(values[1]) };
        options->pass[next_index(&options->passes, MOST_MOUNTS, name)] = request;
        return 2;
    }
    if (strcmp(name, "--give") == 0 && left >= 3)
        return add_gift(options, values), 3;
    if (strcmp(name, "--show") == 0) {
        struct show_request request = { .folder = values[0], .path = values[1] };
        options->show[next_index(&options->shows, MOST_HIDES, name)] = request;
        return 2;
    }
    if (strcmp(name, "--layer") == 0)
        return add_layer(options, values), 2;
    if (strcmp(name, "--root") == 0 && left >= 3)
        return set_root(options, values), 3;
    if (strcmp(name, "--mount") == 0 && left >= 5)
        return add_mount(options, values), 5;
    return -1;
}

/* The options with one value of which there may be many; answers how many values were taken. */
static int take_repeated(struct options *options, const char *name, char **values)
{
    if (strcmp(name, "--join") == 0)
        return options->join[next_index(&options->joins, MOST_JOINS, name)] = values[0], 1;
    if (strcmp(name, "--enter") == 0)
        return options->enter[next_index(&options->enters, MOST_JOINS, name)] = parse_fd(values[0]), 1;
    if (strcmp(name, "--hide") == 0)
        return options->hide[next_index(&options->hides, MOST_HIDES, name)] = values[0], 1;
    if (strcmp(name, "--fix") == 0)
        return options->fix[next_index(&options->fixes, MOST_HIDES, name)] = values[0], 1;
    return 0;
}

/* Carries out one option; answers how many values it took, or -1 when there is no such option or values are missing. */
static int take_option(struct options *options, const char *name, char **values, int left)
{
    if (strcmp(name, "--devices") == 0)
        return options->devices = true, 0;
    if (strcmp(name, "--await") == 0)
        return options->awaits = true, 0;
    if (strcmp(name, "--closed") == 0)
        return options->closed = true, 0;
    if (strcmp(name, "--build") == 0)
        return options->builds = true, 0;
    if (strcmp(name, "--rootless") == 0)
        return options->rootless = true, 0;
    if (strcmp(name, "--apart") == 0)
        return options->apart = true, 0;
    if (left < 1)
        return -1;
    int taken = take_repeated(options, name, values);
    if (taken > 0)
        return taken;
    if (strcmp(name, "--parent") == 0)
        return options->parent = (pid_t)parse_number(values[0], 0x7fffffff), 1;
    if (strcmp(name, "--inspect") == 0)
        return options->inspect_fd = parse_fd(values[0]), 1;
    if (strcmp(name, "--within") == 0)
        return options->within = true, options->within_id = parse_number(values[0], 0xfffffffe), 1;
    if (strcmp(name, "--drop") == 0)
        return options->drop = true, options->drop_to = parse_number(values[0], 0xfffffffe), 1;
    if (strcmp(name, "--copied") == 0)
        return options->copied = values[0], 1;
    if (strcmp(name, "--runtime") == 0)
        return options->uses_runtime = true, options->drop_to = parse_number(values[0], 0xfffffffe), 1;
    if (left < 2)
        return -1;
    if (strcmp(name, "--open") == 0 || strcmp(name, "--open-folder") == 0 || strcmp(name, "--read") == 0) {
        struct open_request request = {
            .folder = strcmp(name, "--open-folder") == 0, .reads = strcmp(name, "--read") == 0, .fd = parse_fd(values[0]), .path = values[1]
        };
        options->open[next_index(&options->opens, MOST_OPENS, name)] = request;
        return 2;
    }
    if (strcmp(name, "--put") == 0) {
        options->put_into = (pid_t)parse_number(values[0], 0x7fffffff);
        options->put_owner = parse_number(values[1], 0xfffffffe);
        return 2;
    }
    if (strcmp(name, "--map") == 0 && left >= 4)
        return set_map(options, values), 4;
    return take_mount_option(options, name, values, left);
}

static void refuse_rootless(const struct options *options)
{
    const bool privileged = options->mounts > 0 || options->root || options->devices || options->gives > 0 || options->shows > 0 || options->inspect_fd >= 0;
    if (options->rootless && (!options->uses_runtime || options->drop_to != 0 || privileged))
        refuse("use without root", "what takes root, or no runtime");
}

void parse_options(struct options *options, int argc, char **argv)
{
    memset(options, 0, sizeof *options);
    options->self = getpid();
    options->inspect_fd = -1;
    int at = 1;
    while (at < argc && strcmp(argv[at], "--") != 0) {
        int taken = take_option(options, argv[at], argv + at + 1, argc - at - 1);
        if (taken < 0) {
            errno = EINVAL;
            fail("understand", argv[at]);
        }
        at += 1 + taken;
    }
    if (at + 1 >= argc) {
        errno = EINVAL;
        fail("find", "program after --");
    }
    options->program = argv + at + 1;
    if (options->builds && !(options->map && options->drop && options->stages > 0))
        refuse("build without", "--map, --drop and --stage");
    if (options->uses_runtime && (options->map || options->drop || options->builds || options->stages == 0))
        refuse("use a runtime with", "--map, --drop or --build, or without --stage");
    if ((options->hides > 0 || options->shows > 0 || options->fixes > 0 || options->gives > 0 || options->closed) && !options->uses_runtime)
        refuse("give, hide, show, fix or close without", "--runtime");
    if (options->copied != NULL && (!options->uses_runtime || options->rootless))
        refuse("copy without", "--runtime, or with --rootless");
    refuse_rootless(options);
}
