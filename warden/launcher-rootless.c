/*
 * A cell that a container runtime starts for an ordinary user:
 *
 *   launcher (monitor) ── runtime, in a user namespace in which that user is root: starts the container, and exits
 *       └─ launcher --within, first process of the container ── first process of the cell ═exec═ warden
 *
 * A runtime starts nothing unless there is a root, and the one id that an ordinary user has to give is the guest's: so it is root's for the container, and the guest's
 * for the cell that is built within it. The root of the container is whole before the runtime starts, in a mount namespace which that user namespace owns; what the
 * runtime sees of cgroups it cannot change, for the first process enters those of the cell itself. The monitor stays where it was started, and has no right anywhere.
 */
#include "launcher.h"

#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <unistd.h>
#include <fcntl.h>

#include "launcher-steps.h"

/* What lies there came with a namespace of more rights and can be covered but not unmounted. */
static void change_view(const struct options *options)
{
    make_fixed(options);
    for (size_t i = 0; i < options->hides; i++)
        if (mount("tmpfs", options->hide[i], "tmpfs", MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC, "size=4k,nr_inodes=2") != 0)
            fail("hide", options->hide[i]);
}

static _Noreturn void enter_as_root(const struct options *options, const struct steps *steps, int program)
{
    const struct own_ids own = { .uid = geteuid(), .gid = getegid() };
    if (unshare(CLONE_NEWUSER) != 0)
        fail("create", "user namespace");
    map_own(0, own);
    stage_sources(options);
    change_view(options);
    assemble_root(steps, options);
    become_runtime(options, program);
}

void start_rootless(const struct options *options, const struct steps *steps, int program)
{
    if (prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0)
        fail("become", "reaper");
    pid_t runtime = fork();
    if (runtime < 0)
        fail("fork", "runtime");
    if (runtime == 0)
        enter_as_root(options, steps, program);
    die_with_parent(options);
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
        fail("set", "no_new_privs");
    close_inherited_from(3);
    monitor_runtime(runtime, 0);
}
