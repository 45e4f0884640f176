/*
 * launcher --resize PID BYTES INODES PATH
 *
 * Changes the size of a live cell's disk: the tmpfs that lies at PATH in the mount namespace of PID. What is mounted there keeps its flags. Where the
 * disk belongs to the cell's user namespace and we are not root, that is entered too, which its maker may do.
 */
#include "launcher.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif
#ifndef SYS_fspick
#define SYS_fspick 433
#endif
#ifndef SYS_fsconfig
#define SYS_fsconfig 431
#endif

/* As in linux/mount.h, which older systems lack. */
enum { PICK_CLOEXEC = 1, CONFIG_SET_STRING = 1, CONFIG_RECONFIGURE = 7 };

static ino_t mount_namespace(int namespaces)
{
    struct stat status;
    if (fstatat(namespaces, "mnt", &status, 0) != 0)
        fail("inspect", "mount namespace");
    return status.st_ino;
}

/* Who may not look there finds the root of the namespace, which is the same but for a process that has left it for another. */
static int root_of(const char *pid)
{
    char path[64];
    if ((size_t)snprintf(path, sizeof path, "/proc/%s/root", pid) >= sizeof path) {
        errno = EINVAL;
        fail("find", pid);
    }
    return open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

void enter_mounts_of(const char *pid)
{
    const int root = root_of(pid);
    int namespaces = open("/proc/self/ns", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (namespaces < 0)
        fail("open", "/proc/self/ns");
    const ino_t own = mount_namespace(namespaces);
    int process = (int)syscall(SYS_pidfd_open, (pid_t)strtol(pid, NULL, 10), 0);
    if (process < 0)
        fail("find", pid);
    if (setns(process, CLONE_NEWNS) != 0 && (errno != EPERM || setns(process, CLONE_NEWUSER | CLONE_NEWNS) != 0))
        fail("enter namespaces of", pid);
    /* A number that was given to a process of the host's meanwhile must not lead to the host's own mounts. */
    if (mount_namespace(namespaces) == own) {
        errno = ESRCH;
        fail("find a cell of", pid);
    }
    if (root >= 0 && (fchdir(root) != 0 || chroot(".") != 0))
        fail("enter root of", pid);
    close(namespaces);
    close(process);
}

/* The kernel says more than EINVAL when it is asked for its words. */
static _Noreturn void fail_to_resize(int filesystem, const char *path)
{
    char words[256];
    int why = errno;
    ssize_t length = read(filesystem, words, sizeof words - 1);
    if (length > 2) {
        words[length] = '\0';
        words[strcspn(words, "\n")] = '\0';
        dprintf(STDERR_FILENO, "launcher: resize %s: %s\n", path, words + 2);
        _exit(LAUNCHER_FAILED);
    }
    errno = why;
    fail("resize", path);
}

_Noreturn void resize_disk(char **values)
{
    const char *path = values[3];
    struct statfs status;

    enter_mounts_of(values[0]);
    if (statfs(path, &status) != 0)
        fail("inspect", path);
    if (status.f_type != TMPFS_MAGIC) {
        errno = EINVAL;
        fail("find a disk at", path);
    }
    int filesystem = (int)syscall(SYS_fspick, AT_FDCWD, path, PICK_CLOEXEC);
    if (filesystem < 0)
        fail("open disk at", path);
    if (syscall(SYS_fsconfig, filesystem, CONFIG_SET_STRING, "size", values[1], 0) != 0
        || syscall(SYS_fsconfig, filesystem, CONFIG_SET_STRING, "nr_inodes", values[2], 0) != 0
        || syscall(SYS_fsconfig, filesystem, CONFIG_RECONFIGURE, NULL, NULL, 0) != 0)
        fail_to_resize(filesystem, path);
    _exit(0);
}
