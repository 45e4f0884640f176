/*
 * Folders and files of the host's that a cell is shown. Whoever checked them handed over open descriptors, and a mount is copied from the
 * descriptor itself: a link or a folder that is swapped after the check gains nothing. Only the one mount is copied, not what lies below.
 */
#include "launcher.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "mount-calls.h"

int clone_mount(int fd, const char *path, const char *name)
{
    int tree = (int)syscall(SYS_open_tree, fd, path, CLONE_TREE | O_CLOEXEC | (path[0] == '\0' ? AT_EMPTY_PATH : 0));
    if (tree < 0)
        fail("copy mount of", name);
    return move_own(tree);
}

void attach_mount(int tree, const char *to, const char *name)
{
    if (syscall(SYS_move_mount, tree, "", AT_FDCWD, to, FROM_EMPTY_PATH) != 0)
        fail("attach", name);
}

/* The owner on the disk is the cell's user; of everyone else nothing can be changed, and nobody in the cell can make a file theirs. */
static void map_owner(int tree, const struct mount_request *mount)
{
    struct stat status;
    if (fstat(mount->fd, &status) != 0)
        fail("inspect", mount->name);
    struct id_map map = { .uid = status.st_uid, .gid = mount->group, .host = mount->owner, .count = 1 };
    int id_map = open_id_map(&map);
    if (!map_mount(tree, id_map) && (mount->writable || !map_mount(tree, -1)))
        fail("map owner of", mount->name);
    close(id_map);
}

void clone_mounts(const struct options *options, int *trees)
{
    for (size_t i = 0; i < options->mounts; i++) {
        const struct mount_request *mount = &options->mount[i];
        trees[i] = clone_mount(mount->fd, "", mount->name);
        if (mount->mapped)
            map_owner(trees[i], mount);
        else if (!map_mount(trees[i], -1))
            fail("make private", mount->name);
        close(mount->fd);
    }
}

void attach_mounts(const struct options *options, const int *trees, const char *folder)
{
    for (size_t i = 0; i < options->mounts; i++) {
        const char *name = options->mount[i].name;
        char to[256];
        if ((size_t)snprintf(to, sizeof to, "%s/%s", folder, name) >= sizeof to) {
            errno = ENAMETOOLONG;
            fail("attach", name);
        }
        make_mount_point(is_folder(trees[i], name), to);
        attach_mount(trees[i], to, name);
        close(trees[i]);
    }
}
