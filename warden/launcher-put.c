/*
 * Folders and files of the host's, put into a container that somebody else made, before anything of a guest's is there: its first process waits for a word of the
 * owner's. Whoever made the container need not be told of them, and could not say whose they are: here each is bound by the descriptor that was checked, with its
 * owner mapped, as it is for any other cell.
 */
#include "launcher.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

/* As long as this is open, it is that process or none: another with the same number is reached by no file of it. */
static int open_process(pid_t pid)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d", (int)pid);
    int process = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (process < 0)
        fail("open", path);
    return move_own(process);
}

static void check_owner(int process, unsigned owner)
{
    char status[4096];
    int file = openat(process, "status", O_RDONLY | O_CLOEXEC);
    ssize_t got = file < 0 ? -1 : read(file, status, sizeof status - 1);
    if (got < 0)
        fail("read", "status");
    close(file);
    status[got] = '\0';
    const char *row = strstr(status, "\nUid:\t");
    errno = ESRCH;
    if (row == NULL || strtoul(row + strlen("\nUid:\t"), NULL, 10) != owner)
        fail("recognise", "first process of the container");
}

static int open_mounts_of(int process)
{
    int namespace = openat(process, "ns/mnt", O_RDONLY | O_CLOEXEC);
    if (namespace < 0)
        fail("open", "mount namespace of the container");
    return move_own(namespace);
}

void put_mounts(struct options *options)
{
    int trees[MOST_MOUNTS];
    const char *place = options->program[0];

    arrange_descriptors(options);
    umask(022);
    int process = open_process(options->put_into);
    check_owner(process, options->put_owner);
    int namespace = open_mounts_of(process);
    clone_mounts(options, trees);
    if (setns(namespace, CLONE_NEWNS) != 0)
        fail("enter", "mount namespace of the container");
    if (mount("tmpfs", place, "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, "mode=0755,size=64k,nr_inodes=512") != 0)
        fail("mount", place);
    attach_mounts(options, trees, place);
    _exit(0);
}
