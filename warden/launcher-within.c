/*
 * A cell built within a container that somebody else made around us:
 *
 *   container engine ── launcher (first process of the container, monitor) ── first process of the cell ═exec═ warden
 *
 * The container gives an id that owns nothing, or its owner's own, and no capability by which anything could be had; its root is read-only and has all that the cell is made of. A user namespace with that one id
 * gives the rights over namespaces of our own, in which the same steps are taken as anywhere else; what the engine mounted in the container is left behind with its
 * root. The pid namespace is one of these too, because only whoever has rights over it may mount its /proc. The monitor keeps nothing, and its end is the container's.
 */
#include "launcher.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "launcher-steps.h"

enum { NAMESPACES = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP };

static void write_own(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text))
        fail("write", path);
    close(fd);
}

static void write_map(const char *path, unsigned inside, unsigned outside)
{
    char map[64];
    snprintf(map, sizeof map, "%u %u 1\n", inside, outside);
    write_own(path, map);
}

/* Nobody may map more than the id that it has, nor its group before the others cannot be dropped any more. */
void map_own(unsigned inside, struct own_ids outside)
{
    write_own("/proc/self/setgroups", "deny");
    write_map("/proc/self/uid_map", inside, outside.uid);
    write_map("/proc/self/gid_map", inside, outside.gid);
}

/* Only the child goes on. */
static void stay_behind(void)
{
    pid_t child = fork();
    if (child < 0)
        fail("fork", "monitor");
    if (child > 0)
        monitor_cell(child);
}

void build_within(struct options *options)
{
    struct steps steps;
    const struct own_ids own = { .uid = geteuid(), .gid = getegid() };

    errno = EINVAL;
    if (!parse_steps(&steps, options->program + 1) || !steps.unshares || steps.hostname == NULL)
        fail("understand", "what the cell is made of");
    arrange_descriptors(options);
    umask(022);
    leave_session();
    enter_groups(options);
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
        fail("set", "no_new_privs");
    if (options->apart)
        stay_behind();
    if (unshare(NAMESPACES) != 0)
        fail("create", "namespaces");
    map_own(options->within_id, own);
    /* Whoever is forked first is the first of the new pid namespace. */
    pid_t first = fork();
    if (first < 0)
        fail("fork", "first process");
    if (first == 0)
        enter_cell(&steps);
    monitor_cell(first);
}
