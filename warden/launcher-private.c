/*
 * In a root that is writable all over the cell's root owns what the host's root owns, and could read it even where the host keeps it from
 * everyone else. So what not everyone may read is taken away, by the mark that overlays have for a deleted file.
 */
#include "launcher.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MOST_DEPTH = 64 };

/* One folder of the lower layer, and the one above it: a chain back to the top. */
struct place {
    const struct place *above;
    const char *name;
    int lower;
    int upper; /* opened when something in it is hidden */
    int depth;
};

static bool is_public(const struct stat *status)
{
    if (S_ISDIR(status->st_mode))
        return (status->st_mode & 05) == 05;
    return S_ISLNK(status->st_mode) || (S_ISREG(status->st_mode) && (status->st_mode & 04) != 0);
}

/* The same folder in the upper layer, made like the lower one where it is missing. */
static int upper_of(struct place *place)
{
    struct stat status;
    if (place->upper >= 0)
        return place->upper;
    int above = upper_of((struct place *)place->above);
    if (fstat(place->lower, &status) != 0)
        fail("inspect", place->name);
    if (mkdirat(above, place->name, 0700) != 0 || fchmodat(above, place->name, status.st_mode & 07777, 0) != 0
        || fchownat(above, place->name, status.st_uid, status.st_gid, AT_SYMLINK_NOFOLLOW) != 0)
        fail("create", place->name);
    place->upper = openat(above, place->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (place->upper < 0)
        fail("open", place->name);
    return place->upper;
}

static void walk(struct place *place)
{
    DIR *folder = fdopendir(dup(place->lower));
    if (folder == NULL)
        fail("list", place->name);
    errno = 0;
    for (struct dirent *entry; (entry = readdir(folder)) != NULL; errno = 0) {
        const char *name = entry->d_name;
        struct stat status;
        if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0 || entry->d_type == DT_LNK)
            continue;
        if (fstatat(place->lower, name, &status, AT_SYMLINK_NOFOLLOW) != 0) {
            /* Gone meanwhile. */
            if (errno == ENOENT)
                continue;
            fail("inspect", name);
        }
        bool deep = S_ISDIR(status.st_mode) && place->depth == MOST_DEPTH;
        if (!is_public(&status) || deep) {
            if (mknodat(upper_of(place), name, S_IFCHR, 0) != 0)
                fail("hide", name);
        } else if (S_ISDIR(status.st_mode)) {
            struct place below = { .above = place, .name = name, .upper = -1, .depth = place->depth + 1 };
            below.lower = openat(place->lower, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
            if (below.lower < 0)
                fail("open", name);
            walk(&below);
            close(below.lower);
            if (below.upper >= 0)
                close(below.upper);
        }
    }
    if (errno != 0)
        fail("list", place->name);
    closedir(folder);
}

void hide_private(const char *lower, const char *upper)
{
    struct place top = { .name = lower, .lower = open(lower, O_RDONLY | O_DIRECTORY | O_CLOEXEC), .upper = open(upper, O_RDONLY | O_DIRECTORY | O_CLOEXEC) };
    if (top.lower < 0 || top.upper < 0)
        fail("open", lower);
    walk(&top);
    close(top.lower);
    close(top.upper);
}
