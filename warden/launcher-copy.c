/*
 * A runtime that shares its file with a container must not be written to from there, so runc starts itself once more from a copy in memory that is sealed; copying took
 * 4 ms of each start. It does not where it finds itself in such a copy: so there is one for all cells of a server. Nobody can change it, and it has no path.
 */
#include "launcher.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <unistd.h>

#include "launcher-copy.h"

#ifndef MFD_EXEC
#define MFD_EXEC 0x0010U
#endif

enum { MOST_COPIED = 128 << 20, SEALS = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE };

static bool is_same(const struct stat *one, const struct stat *other)
{
    return one->st_dev == other->st_dev && one->st_ino == other->st_ino && one->st_size == other->st_size && one->st_mtim.tv_sec == other->st_mtim.tv_sec
        && one->st_mtim.tv_nsec == other->st_mtim.tv_nsec && one->st_ctim.tv_sec == other->st_ctim.tv_sec && one->st_ctim.tv_nsec == other->st_ctim.tv_nsec;
}

/* Where it must be said that it is to be executed, and where that is not known yet. */
static int open_memory(void)
{
    int fd = memfd_create("runtime", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_EXEC);
    if (fd < 0 && errno == EINVAL)
        fd = memfd_create("runtime", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    return fd;
}

static bool fill(int to, int from, const struct stat *original)
{
    struct stat now;
    for (off_t left = original->st_size; left > 0;) {
        ssize_t sent = sendfile(to, from, NULL, (size_t)left);
        if (sent <= 0)
            return false;
        left -= sent;
    }
    /* One that was changed meanwhile is neither what it was nor what it became. */
    return fstat(from, &now) == 0 && is_same(&now, original) && fcntl(to, F_ADD_SEALS, SEALS) == 0;
}

static void make_copy(struct program_copy *copy, int from, const struct stat *original)
{
    int fd = open_memory();
    if (fd < 0)
        return;
    /* Out of the way of the numbers that a cell's streams are to have. */
    int moved = fill(fd, from, original) ? fcntl(fd, F_DUPFD_CLOEXEC, FIRST_OWN_FD) : -1;
    if (moved >= 0)
        *copy = (struct program_copy){ .made = true, .fd = moved, .original = *original };
    close(fd);
}

int copy_program(struct program_copy *copy, const char *path)
{
    struct stat now;
    int from = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (from < 0)
        return -1;
    bool copied = fstat(from, &now) == 0 && S_ISREG(now.st_mode) && now.st_size <= MOST_COPIED;
    if (copied && copy->made && !is_same(&now, &copy->original)) {
        close(copy->fd);
        copy->made = false;
    }
    if (copied && !copy->made)
        make_copy(copy, from, &now);
    close(from);
    return copied && copy->made ? copy->fd : -1;
}
