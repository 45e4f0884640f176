/*
 * A cell that a container runtime starts:
 *
 *   launcher (monitor) ── runtime: makes the namespaces, starts the warden in them, and exits
 *       ├─ warden, which becomes the monitor's when the runtime exits
 *       └─ inspector: reads the filter of one process, and exits
 *
 * The root is whole before the runtime starts, made by the same steps as any other: nothing is left for it to look for by a path, and so no link, race or
 * forgotten flag at a mount point. What it mounts itself is the cell's /proc and /dev, onto folders that are there. It sees no cgroup but those that the cell is to be in.
 *
 * The monitor ends when nothing of the cell is left, with an id that owns nothing and without rights.
 */
#include "launcher.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "launcher-steps.h"
#include "mount-calls.h"

enum { SHELL_SIGNALED = 128, MOST_OWN_VARIABLES = 4 };

void find_runtime(struct steps *steps, struct options *options)
{
    if (!parse_steps(steps, options->program)) {
        errno = EINVAL;
        fail("understand", "the words about the root");
    }
    options->variables = options->program = steps->program;
    while (options->program[0] != NULL && options->program[0][0] != '/' && strchr(options->program[0], '=') != NULL)
        options->program++;
    if (options->program[0] == NULL || options->program - options->variables > MOST_OWN_VARIABLES) {
        errno = EINVAL;
        fail("understand", "the words of the runtime");
    }
    if (options->copied != NULL && strcmp(options->copied, options->program[0]) != 0) {
        errno = EINVAL;
        fail("copy", options->copied);
    }
}

void become_runtime(const struct options *options, int program)
{
    /* Where it looks for what it starts itself, such as those who may map ids. */
    char *environment[MOST_OWN_VARIABLES + 2] = { "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin" };
    memcpy(environment + 1, options->variables, sizeof *environment * (size_t)(options->program - options->variables));

    if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) != 0)
        fail("set", "parent death signal");
    if (getppid() != options->self)
        _exit(LAUNCHER_FAILED);
    /* Where it is forbidden to execute what is in memory, it is the file. */
    if (options->copy >= 0)
        syscall(SYS_execveat, options->copy, "", options->program, environment, AT_EMPTY_PATH);
    syscall(SYS_execveat, program, "", options->program, environment, AT_EMPTY_PATH);
    fail("execute", options->program[0]);
}

static void become_monitor(const struct options *options, int home)
{
    go_home(home);
    if (setgroups(0, NULL) != 0)
        fail("drop", "groups");
    if (setresgid(options->drop_to, options->drop_to, options->drop_to) != 0)
        fail("drop", "gid");
    if (setresuid(options->drop_to, options->drop_to, options->drop_to) != 0)
        fail("drop", "uid");
    die_with_parent(options);
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
        fail("set", "no_new_privs");
    close_inherited_from(3);
}

/* Besides the inspector. Where the kernel keeps no such list, whoever is waited for next tells. */
static bool has_children(pid_t inspector)
{
    char path[64];
    pid_t pid;
    bool found = false;

    snprintf(path, sizeof path, "/proc/self/task/%d/children", (int)getpid());
    FILE *list = fopen(path, "re");
    if (list == NULL)
        return true;
    while (!found && fscanf(list, "%d", &pid) == 1)
        found = pid != inspector;
    fclose(list);
    return found;
}

static int code_of(int status)
{
    return WIFEXITED(status) ? WEXITSTATUS(status) : SHELL_SIGNALED + WTERMSIG(status);
}

/* A runtime that failed clears up after itself; whatever of the cell is there nevertheless is for the owner to end, which looks for it when this is killed. */
static _Noreturn void end_with_runtime(int status, pid_t inspector)
{
    if (has_children(inspector))
        kill(getpid(), SIGKILL);
    _exit(code_of(status));
}

void monitor_runtime(pid_t runtime, pid_t inspector)
{
    int status;
    int last = 0;
    bool started = false;

    for (;;) {
        pid_t ended = waitpid(-1, &status, 0);
        if (ended < 0 && errno == EINTR)
            continue;
        if (ended == runtime && status != 0)
            end_with_runtime(status, inspector);
        if (ended == runtime)
            started = true;
        else if (ended != inspector)
            last = code_of(status);
        if (ended < 0 || (started && !has_children(inspector)))
            _exit(last);
    }
}

/* The warden moves these or lets go of them, which it may only do with what was bound in its own namespace: so the runtime binds them, without flags to get wrong. */
static void set_flags_of_gifts(const struct options *options)
{
    for (size_t i = 0; i < options->gives; i++) {
        const struct give_request *gift = &options->give[i];
        struct mount_attributes flags = { .set = ATTR_NOSUID | ATTR_NODEV | (gift->writable ? 0 : ATTR_RDONLY) };
        char path[256];
        if ((size_t)snprintf(path, sizeof path, "/tmp/%s", gift->name) >= sizeof path) {
            errno = ENAMETOOLONG;
            fail("give", gift->name);
        }
        if (syscall(SYS_mount_setattr, AT_FDCWD, path, AT_RECURSIVE, &flags, sizeof flags) != 0)
            fail("set flags of", gift->name);
    }
}

/* For a runtime in whose cell nobody can do it: what is mounted below keeps its flags. */
static void close_root(void)
{
    static const char *const paths[] = { NEW_ROOT, "/tmp/dev" };
    struct mount_attributes flags = { .set = ATTR_RDONLY };

    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++)
        if (syscall(SYS_mount_setattr, AT_FDCWD, paths[i], 0, &flags, sizeof flags) != 0)
            fail("close", paths[i]);
}

void make_fixed(const struct options *options)
{
    struct mount_attributes flags = { .set = ATTR_RDONLY };
    for (size_t i = 0; i < options->fixes; i++)
        if (syscall(SYS_mount_setattr, AT_FDCWD, options->fix[i], 0, &flags, sizeof flags) != 0)
            fail("make read-only", options->fix[i]);
}

static void change_view(const struct options *options)
{
    for (size_t i = 0; i < options->shows; i++)
        if (mount(options->show[i].folder, options->show[i].path, NULL, MS_BIND, NULL) != 0)
            fail("show", options->show[i].folder);
    /* A mount of its own each, because one in which something is open to be written to stays writable. */
    for (size_t i = 0; i < options->fixes; i++)
        if (mount(options->fix[i], options->fix[i], NULL, MS_BIND, NULL) != 0)
            fail("bind", options->fix[i]);
    make_fixed(options);
    for (size_t i = 0; i < options->hides; i++)
        if (umount2(options->hide[i], MNT_DETACH) != 0)
            fail("hide", options->hide[i]);
}

void start_runtime(const struct options *options, const struct steps *steps, struct runtime_start cell)
{
    change_view(options);
    set_flags_of_gifts(options);
    assemble_root(steps, options);
    if (options->closed)
        close_root();
    if (prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0)
        fail("become", "reaper");
    pid_t runtime = fork();
    if (runtime < 0)
        fail("fork", "runtime");
    if (runtime == 0)
        become_runtime(options, cell.program);
    become_monitor(options, cell.home);
    monitor_runtime(runtime, cell.inspector);
}
