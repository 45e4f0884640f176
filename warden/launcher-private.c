/*
 * In a root that is writable all over the cell's root owns what the host's root owns, and could read it even where the host keeps it from
 * everyone else. So what not everyone may read is taken away, by the mark that overlays have for a deleted file.
 *
 * Every file of a layer is looked at, which takes a while: that is done first, before the launcher is held to the cell's own limits.
 */
#include "launcher.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

enum { MOST_DEPTH = 64 };

struct walk {
    struct layer_request *layer;
    char path[PATH_MAX];
    size_t length;
    int depth;
};

static bool is_public(const struct stat *status)
{
    if (S_ISDIR(status->st_mode))
        return (status->st_mode & 05) == 05;
    return S_ISREG(status->st_mode) && (status->st_mode & 04) != 0;
}

static void remember(struct walk *walk)
{
    struct layer_request *layer = walk->layer;
    layer->hidden = realloc(layer->hidden, (layer->hiddens + 1) * sizeof *layer->hidden);
    char *path = strdup(walk->path);
    if (layer->hidden == NULL || path == NULL)
        fail("allocate", "private files");
    layer->hidden[layer->hiddens++] = path;
}

static void look_into(struct walk *walk, int folder);

static void look_at(struct walk *walk, int folder, const char *name)
{
    struct stat status;
    if (fstatat(folder, name, &status, AT_SYMLINK_NOFOLLOW) != 0) {
        /* Gone meanwhile. */
        if (errno == ENOENT)
            return;
        fail("inspect", walk->path);
    }
    if (S_ISLNK(status.st_mode))
        return;
    bool folders = S_ISDIR(status.st_mode);
    if (!is_public(&status) || (folders && walk->depth == MOST_DEPTH)) {
        remember(walk);
    } else if (folders) {
        int below = openat(folder, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (below < 0)
            fail("open", walk->path);
        walk->depth++;
        look_into(walk, below);
        walk->depth--;
    }
}

/* Closes the folder. */
static void look_into(struct walk *walk, int folder)
{
    const size_t length = walk->length;
    DIR *entries = fdopendir(folder);
    if (entries == NULL)
        fail("list", walk->path);
    errno = 0;
    for (struct dirent *entry; (entry = readdir(entries)) != NULL; errno = 0) {
        const char *name = entry->d_name;
        if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0 || entry->d_type == DT_LNK)
            continue;
        int added = snprintf(walk->path + length, sizeof walk->path - length, "%s%s", length == 0 ? "" : "/", name);
        walk->length = length + (size_t)added;
        if (walk->length >= sizeof walk->path) {
            errno = ENAMETOOLONG;
            fail("list", walk->path);
        }
        look_at(walk, folder, name);
    }
    if (errno != 0)
        fail("list", walk->path);
    walk->length = length;
    walk->path[length] = '\0';
    closedir(entries);
}

void find_private(struct layer_request *layer)
{
    struct walk walk = { .layer = layer };
    int top = openat(layer->tree, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (top < 0)
        fail("open", layer->source);
    look_into(&walk, top);
}

/* The folders above a private file, made in the upper layer like those in the lower one. */
static void make_like_lower(const struct layer_request *layer, int upper, char *path)
{
    for (char *slash = path; (slash = strchr(slash, '/')) != NULL; *slash++ = '/') {
        struct stat status;
        *slash = '\0';
        if (faccessat(upper, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
            continue;
        if (fstatat(layer->tree, path, &status, AT_SYMLINK_NOFOLLOW) != 0)
            fail("inspect", path);
        if (mkdirat(upper, path, 0700) != 0 || fchownat(upper, path, status.st_uid, status.st_gid, AT_SYMLINK_NOFOLLOW) != 0
            || fchmodat(upper, path, status.st_mode & 07777, 0) != 0)
            fail("create", path);
    }
}

void hide_private(const struct layer_request *layer, const char *upper)
{
    int folder = open(upper, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0)
        fail("open", upper);
    for (size_t i = 0; i < layer->hiddens; i++) {
        make_like_lower(layer, folder, layer->hidden[i]);
        if (mknodat(folder, layer->hidden[i], S_IFCHR, makedev(0, 0)) != 0)
            fail("hide", layer->hidden[i]);
    }
    close(folder);
}
