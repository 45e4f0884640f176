/*
 * bwrap runs under an id that owns nothing and so cannot bind what lies below a 0700 folder. Here, still privileged, each
 * source is bound to a name below /tmp of a private mount namespace, where any id can reach it. Sources are opened before /tmp
 * is covered, so one may lie below /tmp itself.
 */
#include "launcher.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

static void own_mount_namespace(void)
{
    if (unshare(CLONE_NEWNS) != 0)
        fail("unshare", "mount namespace");
    if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0)
        fail("make private", "/");
}

static void make_mount_point(int source, const char *path)
{
    struct stat status;
    if (fstat(source, &status) != 0)
        fail("inspect", path);
    if (S_ISDIR(status.st_mode)) {
        if (mkdir(path, 0755) != 0)
            fail("create", path);
        return;
    }
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0444);
    if (fd < 0)
        fail("create", path);
    close(fd);
}

static void bind_source(int source, const struct stage_request *stage)
{
    char from[64];
    char to[256];
    snprintf(from, sizeof from, "/proc/self/fd/%d", source);
    if ((size_t)snprintf(to, sizeof to, "/tmp/%s", stage->name) >= sizeof to) {
        errno = ENAMETOOLONG;
        fail("stage", stage->name);
    }
    make_mount_point(source, to);
    if (mount(from, to, NULL, MS_BIND | MS_REC, NULL) != 0)
        fail("bind", stage->source);
    close(source);
}

static void make_device_nodes(void)
{
    static const struct {
        const char *path;
        unsigned major, minor;
    } devices[] = {
        { "/tmp/dev/null", 1, 3 },   { "/tmp/dev/zero", 1, 5 },    { "/tmp/dev/full", 1, 7 },
        { "/tmp/dev/random", 1, 8 }, { "/tmp/dev/urandom", 1, 9 }, { "/tmp/dev/tty", 5, 0 },
    };
    for (size_t i = 0; i < sizeof devices / sizeof *devices; i++) {
        if (mknod(devices[i].path, S_IFCHR, makedev(devices[i].major, devices[i].minor)) != 0 || chmod(devices[i].path, 0666) != 0)
            fail("create", devices[i].path);
    }
}

static void make_device_links(void)
{
    static const struct {
        const char *path;
        const char *target;
    } links[] = {
        { "/tmp/dev/fd", "/proc/self/fd" },         { "/tmp/dev/stdin", "/proc/self/fd/0" },  { "/tmp/dev/stdout", "/proc/self/fd/1" },
        { "/tmp/dev/stderr", "/proc/self/fd/2" }, { "/tmp/dev/ptmx", "pts/ptmx" },
    };
    for (size_t i = 0; i < sizeof links / sizeof *links; i++) {
        if (symlink(links[i].target, links[i].path) != 0)
            fail("create", links[i].path);
    }
}

/* Nodes on one tmpfs instead of a bind for each: six mounts less for every cell. Nobody in the cell owns it. */
static void make_devices(void)
{
    if (mkdir("/tmp/dev", 0755) != 0)
        fail("create", "/tmp/dev");
    if (mount("tmpfs", "/tmp/dev", "tmpfs", MS_NOSUID | MS_NOEXEC, "mode=0755,size=16k,nr_inodes=32") != 0)
        fail("mount", "/tmp/dev");
    make_device_nodes();
    make_device_links();
    if (mkdir("/tmp/dev/pts", 0755) != 0)
        fail("create", "/tmp/dev/pts");
    if (mkdir("/tmp/dev/shm", 0755) != 0)
        fail("create", "/tmp/dev/shm");
}

void stage_sources(const struct options *options)
{
    int sources[MOST_STAGES];

    if (options->stages == 0 && !options->devices)
        return;
    own_mount_namespace();
    for (size_t i = 0; i < options->stages; i++) {
        int fd = open(options->stage[i].source, O_PATH | O_CLOEXEC);
        if (fd < 0)
            fail("open", options->stage[i].source);
        sources[i] = move_own(fd);
    }
    if (mount("tmpfs", "/tmp", "tmpfs", MS_NOSUID | MS_NODEV, "mode=0755,size=64k,nr_inodes=128") != 0)
        fail("mount", "/tmp");
    for (size_t i = 0; i < options->stages; i++)
        bind_source(sources[i], &options->stage[i]);
    if (options->devices)
        make_devices();
}
