/*
 * The root of a cell, made by its first process before it becomes the warden: in the cell's namespaces, with capabilities over these alone.
 *
 * Every place is found from the new root and never leaves it, whatever links lie on the way; every mount is copied, given its flags while nobody can see it, and only
 * then attached.
 */
#include "launcher.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/capability.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/mount.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "launcher-steps.h"
#include "mount-calls.h"

enum { FOLDER_MODE = 0755, MOUNT_POINT_MODE = 0444 };

static int open_within(int root, const char *path)
{
    struct open_how how = { .flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS };
    return (int)syscall(SYS_openat2, root, path, &how, sizeof how);
}

/* The folder that a path lies in, made where it is missing; `name` is what remains of the path. */
static int open_parent(int root, const char *path, const char **name)
{
    char above[PATH_MAX];
    const char *slash = strrchr(path, '/');
    size_t length = (size_t)(slash - path);

    errno = ENAMETOOLONG;
    if (length >= sizeof above)
        fail("make", path);
    *name = slash + 1;
    memcpy(above, path, length);
    strcpy(above + length, length == 0 ? "/" : "");
    int fd = open_within(root, above);
    if (fd >= 0 || errno != ENOENT)
        return fd;
    const char *missing;
    int parent = open_parent(root, above, &missing);
    if (parent < 0 || mkdirat(parent, missing, FOLDER_MODE) != 0)
        fail("make", above);
    close(parent);
    return open_within(root, above);
}

/* Where something is mounted: what is there is taken, what is not is made. */
static int open_place(int root, const char *path, bool folder)
{
    int place = open_within(root, path);
    if (place >= 0)
        return place;
    const char *name;
    int parent = open_parent(root, path, &name);
    if (parent < 0)
        fail("make", path);
    if (folder ? mkdirat(parent, name, FOLDER_MODE) != 0 : mknodat(parent, name, S_IFREG | MOUNT_POINT_MODE, 0) != 0)
        fail("make", path);
    close(parent);
    place = open_within(root, path);
    if (place < 0)
        fail("open", path);
    return place;
}

static void bind_source(int root, const struct step *step)
{
    struct mount_attributes flags = { .set = step->flags };
    int tree = (int)syscall(SYS_open_tree, AT_FDCWD, step->source, CLONE_TREE | O_CLOEXEC | AT_RECURSIVE);
    if (tree < 0)
        fail("copy mount of", step->target);
    if (syscall(SYS_mount_setattr, tree, "", AT_EMPTY_PATH | AT_RECURSIVE, &flags, sizeof flags) != 0)
        fail("set flags of", step->target);
    int place = open_place(root, step->target, is_folder(tree, step->target));
    if (syscall(SYS_move_mount, tree, "", place, "", FROM_EMPTY_PATH | TO_EMPTY_PATH) != 0)
        fail("bind", step->target);
    close(place);
    close(tree);
}

static void make_link(int root, const struct step *step)
{
    const char *name;
    int parent = open_parent(root, step->target, &name);
    if (parent < 0 || symlinkat(step->source, parent, name) != 0)
        fail("link", step->target);
    close(parent);
}

/* Onto the place itself, whatever it is reached by. */
static bool mount_new(int root, const struct step *step, const char *type)
{
    char path[64];
    const bool proc = step->kind == STEP_PROC;
    int place = open_place(root, step->target, true);
    snprintf(path, sizeof path, "/proc/self/fd/%d", place);
    bool mounted = mount(type, path, type, MS_NOSUID | MS_NODEV | (proc ? MS_NOEXEC : 0), proc ? NULL : "mode=0755") == 0;
    close(place);
    return mounted;
}

static void copy_file(int root, const struct step *step)
{
    const char *name;
    int parent = open_parent(root, step->target, &name);
    int file = parent < 0 ? -1 : openat(parent, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, step->mode);
    if (file < 0)
        fail("make", step->target);
    ssize_t copied;
    while ((copied = sendfile(file, step->fd, NULL, 1 << 20)) > 0)
        continue;
    if (copied < 0 || close(file) != 0)
        fail("copy", step->target);
    close(parent);
    close(step->fd);
}

static void take_step(int root, const struct step *step)
{
    switch (step->kind) {
    case STEP_BIND:
        bind_source(root, step);
        return;
    case STEP_SYMLINK:
        make_link(root, step);
        return;
    case STEP_PROC:
        if (!mount_new(root, step, "proc"))
            fail("mount proc on", step->target);
        return;
    case STEP_TMPFS:
        if (!mount_new(root, step, "tmpfs"))
            fail("mount tmpfs on", step->target);
        return;
    case STEP_FOLDER:
        close(open_place(root, step->target, true));
        return;
    case STEP_FILE:
        copy_file(root, step);
        return;
    }
}

static int open_new_root(void)
{
    int root = open(NEW_ROOT, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (root < 0)
        fail("open", NEW_ROOT);
    return root;
}

/* The old root comes to lie on the new one, and goes with all that is below it. */
static void leave_old_root(int root)
{
    if (fchdir(root) != 0 || syscall(SYS_pivot_root, ".", ".") != 0)
        fail("enter", "new root");
    if (umount2(".", MNT_DETACH) != 0)
        fail("leave", "old root");
    if (chdir("/") != 0)
        fail("enter", "/");
}

static int make_root(const struct steps *steps, const char *options)
{
    if (mount("tmpfs", NEW_ROOT, "tmpfs", MS_NOSUID | MS_NODEV, options) != 0)
        fail("mount", NEW_ROOT);
    int root = open_new_root();
    for (size_t i = 0; i < steps->count; i++) {
        take_step(root, &steps->list[i]);
        /* A root that is bound covers the one that was there. */
        if (strcmp(steps->list[i].target, "/") == 0) {
            close(root);
            root = open_new_root();
        }
    }
    return root;
}

void take_steps(const struct steps *steps)
{
    /* Nothing that the host mounts from now on is seen here, nor anything of this there. */
    if (mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) != 0)
        fail("make a slave of", "/");
    int root = make_root(steps, "mode=0755");
    leave_old_root(root);
    close(root);
}

/* What is made from now on belongs to this id; the rights over files, which go when it is no longer root's, are taken again. */
static void make_for(unsigned id)
{
    struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
    struct __user_cap_data_struct sets[2];

    setfsgid(id);
    setfsuid(id);
    errno = EPERM;
    if ((unsigned)setfsuid((uid_t)-1) != id || (unsigned)setfsgid((gid_t)-1) != id)
        fail("make files for", "another id");
    if (syscall(SYS_capget, &header, sets) != 0)
        fail("read", "capabilities");
    for (int i = 0; i < 2; i++)
        sets[i].effective = sets[i].permitted;
    if (syscall(SYS_capset, &header, sets) != 0)
        fail("set", "capabilities");
}

static void make_place(int root, const struct give_request *gift)
{
    char path[256];
    snprintf(path, sizeof path, "/tmp/%s", gift->name);
    int source = open(path, O_PATH | O_CLOEXEC);
    if (source < 0)
        fail("open", path);
    close(open_place(root, gift->place, is_folder(source, path)));
    close(source);
}

/* The warden makes what is missing, and is nobody to files of the host's root. */
void assemble_root(const struct steps *steps, const struct options *options)
{
    char mounted[96];
    snprintf(mounted, sizeof mounted, "mode=0755,size=4m,nr_inodes=4096,uid=%u,gid=%u", options->drop_to, options->drop_to);
    make_for(options->drop_to);
    int root = make_root(steps, mounted);
    for (size_t i = 0; i < options->gives; i++)
        make_place(root, &options->give[i]);
    close(root);
    make_for(geteuid());
}
