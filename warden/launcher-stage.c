/*
 * bwrap runs under an id that owns nothing and so cannot bind what lies below a 0700 folder. Here, still privileged, each
 * source is put at a name below /tmp of a private mount namespace, where any id can reach it. Sources are opened before /tmp
 * is covered, so one may lie below /tmp itself.
 *
 * A bind has the host's own inodes, and with them a guest could watch what the host opens and hold its locks; the inodes of
 * an overlay belong to one cell alone.
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

/* No stage can have a name that begins with a dot. */
#define EMPTY_FOLDER "/tmp/.empty"

static void own_mount_namespace(void)
{
    if (unshare(CLONE_NEWNS) != 0)
        fail("unshare", "mount namespace");
    if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0)
        fail("make private", "/");
}

bool is_folder(int source, const char *path)
{
    struct stat status;
    if (fstat(source, &status) != 0)
        fail("inspect", path);
    return S_ISDIR(status.st_mode);
}

void make_mount_point(bool folder, const char *path)
{
    if (folder) {
        if (mkdir(path, 0755) != 0)
            fail("create", path);
        return;
    }
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0444);
    if (fd < 0)
        fail("create", path);
    close(fd);
}

/* By descriptor, because the options give a meaning to some characters that a path may have. */
static void overlay_source(int source, const struct stage_request *stage, const char *to)
{
    char options[128];
    /* Without a layer to write to the kernel wants two to read from. */
    snprintf(options, sizeof options, "lowerdir=/proc/self/fd/%d:%s", source, EMPTY_FOLDER);
    if (mount("overlay", to, "overlay", MS_RDONLY | MS_NOSUID | MS_NODEV, options) != 0)
        fail("veil", stage->source);
}

static void place_source(int source, const struct stage_request *stage)
{
    char from[64];
    char to[256];
    snprintf(from, sizeof from, "/proc/self/fd/%d", source);
    if ((size_t)snprintf(to, sizeof to, "/tmp/%s", stage->name) >= sizeof to) {
        errno = ENAMETOOLONG;
        fail("stage", stage->name);
    }
    bool folder = is_folder(source, stage->source);
    make_mount_point(folder, to);
    if (folder && stage->veil)
        overlay_source(source, stage, to);
    else if (mount(from, to, NULL, MS_BIND | MS_REC, NULL) != 0)
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
    int trees[MOST_MOUNTS];

    if (options->stages == 0 && options->mounts == 0 && !options->devices && !options->root)
        return;
    clone_mounts(options, trees);
    own_mount_namespace();
    for (size_t i = 0; i < options->stages; i++) {
        int fd = open(options->stage[i].source, O_PATH | O_CLOEXEC);
        if (fd < 0)
            fail("open", options->stage[i].source);
        sources[i] = move_own(fd);
    }
    if (mount("tmpfs", "/tmp", "tmpfs", MS_NOSUID | MS_NODEV, "mode=0755,size=64k,nr_inodes=512") != 0)
        fail("mount", "/tmp");
    if (mkdir(EMPTY_FOLDER, 0755) != 0 || mkdir(NEW_ROOT, 0755) != 0)
        fail("create", EMPTY_FOLDER);
    for (size_t i = 0; i < options->stages; i++)
        place_source(sources[i], &options->stage[i]);
    attach_mounts(options, trees, "/tmp");
    if (options->devices)
        make_devices();
    build_root(options);
}
