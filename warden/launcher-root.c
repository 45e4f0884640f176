/*
 * A root that is writable all over. One tmpfs of the disk's size holds everything that is written:
 *
 *   /tmp/disk/root       what becomes the cell's /, with a mount for each layer
 *   /tmp/disk/layered/{layers,scratch}/N  what was changed of layer N
 *   /tmp/disk/shm        the cell's /dev/shm
 *
 * A layer is an overlay over a folder of the host's, on which the host's ids are the cell's: its root owns there what root owns here, and the
 * host's files stay as they are.
 */
#include "launcher.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#define DISK "/tmp/disk"
#define ROOT DISK "/root"
#define LAYERED DISK "/layered"
#define LOWER "/tmp/.lower"

static void make_folder(const char *path, mode_t mode, unsigned owner)
{
    if (mkdir(path, 0700) != 0 || chmod(path, mode) != 0 || chown(path, owner, owner) != 0)
        fail("create", path);
}

void clone_layers(struct options *options)
{
    if (!options->root)
        return;
    struct id_map map = { .host = options->root_base, .count = 65536 };
    int id_map = open_id_map(&map);
    for (size_t i = 0; i < options->layers; i++) {
        struct layer_request *layer = &options->layer[i];
        layer->tree = clone_mount(AT_FDCWD, layer->source, layer->source);
        if (!map_mount(layer->tree, id_map))
            fail("map ids of", layer->source);
        if (is_folder(layer->tree, layer->source))
            find_private(layer);
    }
    close(id_map);
}

/* Above a mount point; one that lies within another layer is there already. */
static void make_parents(char *path, unsigned owner)
{
    for (char *slash = path + strlen(ROOT) + 1; (slash = strchr(slash, '/')) != NULL; slash++) {
        *slash = '\0';
        if (access(path, F_OK) != 0)
            make_folder(path, 0755, owner);
        *slash = '/';
    }
}

/* The cell's own file worker reads no other marks; a tmpfs before Linux 6.6 keeps only these. */
static const char *marks_of(const char *up)
{
    static const char trial[] = "user.overlay.trial";
    return setxattr(up, trial, "y", 1, 0) == 0 && removexattr(up, trial) == 0 ? ",userxattr" : ",redirect_dir=off";
}

static void lay_folder(const struct layer_request *layer, const char *to, size_t index)
{
    char up[64];
    char work[64];
    char options[256];
    struct stat status;

    snprintf(up, sizeof up, LAYERED "/layers/%zu", index);
    snprintf(work, sizeof work, LAYERED "/scratch/%zu", index);
    make_folder(work, 0700, 0);
    attach_mount(layer->tree, LOWER, layer->source);
    if (stat(LOWER, &status) != 0)
        fail("inspect", to);
    /* The top folder of an overlay is the upper layer's. */
    make_folder(up, status.st_mode & 07777, 0);
    if (chown(up, status.st_uid, status.st_gid) != 0)
        fail("give away", up);
    hide_private(layer, up);
    snprintf(options, sizeof options, "lowerdir=" LOWER ",upperdir=%s,workdir=%s,index=off,metacopy=off%s", up, work, marks_of(up));
    if (access(to, F_OK) != 0)
        make_mount_point(true, to);
    if (mount("overlay", to, "overlay", MS_NOSUID | MS_NODEV, options) != 0)
        fail("overlay", to);
    if (umount2(LOWER, MNT_DETACH) != 0)
        fail("detach", LOWER);
}

/* A single file cannot be overlaid: it stays read-only. */
static void lay_file(const struct layer_request *layer, const char *to)
{
    if (access(to, F_OK) != 0)
        make_mount_point(false, to);
    attach_mount(layer->tree, to, layer->source);
    if (mount(NULL, to, NULL, MS_BIND | MS_REMOUNT | MS_RDONLY | MS_NOSUID | MS_NODEV, NULL) != 0)
        fail("make read-only", to);
}

void build_root(const struct options *options)
{
    char text[4200];

    if (!options->root)
        return;
    snprintf(text, sizeof text, "size=%s,nr_inodes=%s,mode=0711", options->root_bytes, options->root_inodes);
    if (mkdir(DISK, 0755) != 0 || mkdir(LOWER, 0755) != 0)
        fail("create", DISK);
    if (mount("tmpfs", DISK, "tmpfs", MS_NOSUID | MS_NODEV, text) != 0)
        fail("mount", DISK);
    make_folder(ROOT, 0755, options->root_base);
    /* The warden adds its own. */
    make_folder(LAYERED, 0755, options->drop_to);
    make_folder(LAYERED "/layers", 0755, options->drop_to);
    make_folder(LAYERED "/scratch", 0700, options->drop_to);
    make_folder(DISK "/shm", 01777, options->root_base);
    if (options->devices && mount(DISK "/shm", "/tmp/dev/shm", NULL, MS_BIND, NULL) != 0)
        fail("bind", DISK "/shm");
    for (size_t i = 0; i < options->layers; i++) {
        const struct layer_request *layer = &options->layer[i];
        if ((size_t)snprintf(text, sizeof text, ROOT "%s", layer->target) >= sizeof text) {
            errno = ENAMETOOLONG;
            fail("lay under", layer->target);
        }
        make_parents(text, options->root_base);
        if (is_folder(layer->tree, layer->source))
            lay_folder(layer, text, i);
        else
            lay_file(layer, text);
        close(layer->tree);
    }
}
