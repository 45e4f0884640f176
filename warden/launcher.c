/*
 * The launcher starts bwrap. It does what TypeScript cannot: join cgroups before the clone, stage bind sources while it
 * still may read them, write id maps from outside, and tie the cell's life to its owner's.
 *
 *   engine ── launcher ═exec═ bwrap (monitor) ── bwrap (child, new namespaces) ═exec═ warden
 *                 └─ mapper: reads the child's pid, writes its id maps, lets it go on, exits
 *
 * With --build it is monitor and child itself, and bwrap is not executed.
 *
 * With --runtime the program is a container runtime, and this stays as the monitor of what that started; with --rootless too it is started as an ordinary user.
 *
 * With --within it is the first process of a container, and becomes the monitor of the cell that it builds there.
 *
 * With --put it binds folders of the host's in a container, and exits.
 *
 * With --serve it stays and forks one launcher after the other.
 *
 * Everything that needs privilege happens before the ids are dropped; nothing is regained. For an ordinary user the options
 * for staging, mapping and dropping are simply absent.
 */
#include "launcher.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "launcher-steps.h"

void fail(const char *verb, const char *object)
{
    dprintf(STDERR_FILENO, "launcher: %s %s: %s\n", verb, object, strerror(errno));
    _exit(LAUNCHER_FAILED);
}

static void drop_ids(const struct options *options)
{
    if (!options->drop)
        return;
    if (options->builds && prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) != 0)
        fail("keep", "capabilities");
    if (setgroups(0, NULL) != 0)
        fail("drop", "groups");
    if (setresgid(options->drop_to, options->drop_to, options->drop_to) != 0)
        fail("drop", "gid");
    if (setresuid(options->drop_to, options->drop_to, options->drop_to) != 0)
        fail("drop", "uid");
    if (options->builds)
        keep_rights_of_builder();
}

/* After the ids are dropped, because a change of ids clears the signal; the owner may have died before it was set. */
void die_with_parent(const struct options *options)
{
    if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) != 0)
        fail("set", "parent death signal");
    if (options->parent != 0 && getppid() != options->parent) {
        errno = ESRCH;
        fail("find", "parent");
    }
}

/* A session of its own: no controlling terminal reaches the cell, and a Ctrl-C at the owner's terminal does not end it. */
void leave_session(void)
{
    if (setsid() < 0 && getsid(0) != getpid())
        fail("start", "session");
}

static _Noreturn void execute(int program, const struct options *options, const struct mapper *mapper)
{
    char *const environment[] = { NULL };

    if (options->map) {
        place_descriptor(mapper->info, options->info_fd);
        place_descriptor(mapper->block, options->block_fd);
    }
    /* A setuid bwrap would refuse the flags we need; with this it runs as what we are. */
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
        fail("set", "no_new_privs");
    syscall(SYS_execveat, program, "", options->program, environment, AT_EMPTY_PATH);
    fail("execute", options->program[0]);
}

/* The owner makes the groups while the mounts are staged, and says so by one byte. Nothing is launched for an owner that went away or failed. */
static void await_owner(const struct options *options)
{
    char byte;
    if (!options->awaits)
        return;
    ssize_t got = read(STDIN_FILENO, &byte, 1);
    if (got == 0)
        _exit(LAUNCHER_FAILED);
    if (got < 0)
        fail("hear", "owner");
}

void enter_groups(struct options *options)
{
    await_owner(options);
    open_for_program(options);
    join_cgroups(options);
}

void launch(int argc, char **argv, int copy)
{
    struct options options;
    struct steps steps;

    parse_options(&options, argc, argv);
    options.copy = copy;
    if (options.within)
        build_within(&options);
    if (options.put_into != 0)
        put_mounts(&options);
    options.builds = can_build(&steps, &options);
    if (options.uses_runtime)
        find_runtime(&steps, &options);
    arrange_descriptors(&options);
    clone_layers(&options);
    /* By descriptor, because staging covers /tmp. */
    int program = open(options.program[0], O_PATH | O_CLOEXEC);
    if (program < 0)
        fail("open", options.program[0]);
    program = move_own(program);
    /* Where the mounts are that staging copies. */
    int home = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);
    if (home < 0)
        fail("open", "mount namespace");
    home = move_own(home);
    umask(022);
    leave_session();
    if (options.rootless) {
        enter_groups(&options);
        start_rootless(&options, &steps, program);
    }
    /* While there is time: whoever is to say that the groups are there still makes them. */
    pid_t inspector = options.builds || options.uses_runtime ? fork_inspector(&options) : 0;
    /* What is staged is of a fixed size, so it may as well count to the owner. */
    bool covered = has_groups_below_tmp(&options);
    if (covered)
        enter_groups(&options);
    stage_sources(&options);
    if (!covered)
        enter_groups(&options);
    if (options.uses_runtime)
        start_runtime(&options, &steps, (struct runtime_start){ .program = program, .home = home, .inspector = inspector });
    struct mapper mapper = options.builds ? (struct mapper){ -1, -1 } : fork_mapper(&options);
    drop_ids(&options);
    die_with_parent(&options);
    if (options.builds)
        build_cell(&options, &steps, home);
    execute(program, &options, &mapper);
}

int main(int argc, char **argv)
{
    if (argc == 6 && strcmp(argv[1], "--resize") == 0)
        resize_disk(argv + 2);
    if (argc == 4 && strcmp(argv[1], "--seal") == 0)
        seal_mounts(argv + 2);
    if (argc == 2 && strcmp(argv[1], "--tell") == 0)
        tell_owner();
    if (argc == 4 && strcmp(argv[1], "--serve") == 0)
        serve(argv + 2);
    launch(argc, argv, -1);
}
