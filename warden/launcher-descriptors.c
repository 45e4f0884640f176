/* Which descriptors the program gets: 0, 1, 2 and those opened for it, nothing that the owner happened to have. */
#include "launcher.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

static void close_span(unsigned first, unsigned last)
{
    if (first > last || syscall(SYS_close_range, first, last, 0) == 0)
        return;
    if (errno != ENOSYS)
        fail("close", "inherited descriptors");
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        fail("read", "descriptor limit");
    for (rlim_t fd = first; fd < limit.rlim_max && fd <= last; fd++)
        close((int)fd);
}

void close_inherited_from(unsigned first)
{
    close_span(first, ~0U);
}

static int compare_numbers(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

static void close_all_but(int *kept, size_t count)
{
    qsort(kept, count, sizeof *kept, compare_numbers);
    unsigned first = 3;
    for (size_t i = 0; i < count; i++) {
        close_span(first, (unsigned)kept[i] - 1);
        first = (unsigned)kept[i] + 1;
    }
    close_span(first, ~0U);
}

void close_all_but_one(int kept)
{
    close_all_but(&kept, 1);
}

/* Out of the way first: the numbers that were inherited are wanted for other things. */
static void close_inherited(struct options *options)
{
    int kept[2 * MOST_MOUNTS + MOST_JOINS + 2];
    size_t count = 0;

    for (size_t i = 0; i < options->mounts; i++)
        kept[count++] = options->mount[i].fd = move_own(options->mount[i].fd);
    for (size_t i = 0; i < options->passes; i++)
        kept[count++] = options->pass[i].inherited = move_own(options->pass[i].inherited);
    for (size_t i = 0; i < options->enters; i++)
        kept[count++] = options->enter[i] = move_own(options->enter[i]);
    if (options->inspect_fd >= 0)
        kept[count++] = options->inspect_fd = move_own(options->inspect_fd);
    if (options->copy >= 0)
        kept[count++] = options->copy = move_own(options->copy);
    close_all_but(kept, count);
}

int move_own(int fd)
{
    int moved = fcntl(fd, F_DUPFD_CLOEXEC, FIRST_OWN_FD);
    if (moved < 0)
        fail("move", "descriptor");
    close(fd);
    return moved;
}

void place_descriptor(int fd, int wanted)
{
    if (dup2(fd, wanted) < 0)
        fail("place", "descriptor");
    close(fd);
}

void arrange_descriptors(struct options *options)
{
    close_inherited(options);
    for (size_t i = 0; i < options->passes; i++)
        place_descriptor(options->pass[i].inherited, options->pass[i].wanted);
}

void open_for_program(const struct options *options)
{
    for (size_t i = 0; i < options->opens; i++) {
        const struct open_request *request = &options->open[i];
        int fd = open(request->path, (request->folder ? O_PATH | O_DIRECTORY : request->reads ? O_RDONLY : O_WRONLY) | O_CLOEXEC);
        if (fd < 0)
            fail("open", options->open[i].path);
        place_descriptor(move_own(fd), options->open[i].fd);
    }
}

/* 0 means the writer itself, in whatever pid namespace it is. */
static void enter_group(int fd, const char *name)
{
    if (write(fd, "0", 1) != 1)
        fail("join", name);
    close(fd);
}

void join_cgroups(const struct options *options)
{
    for (size_t i = 0; i < options->enters; i++)
        enter_group(options->enter[i], "a group by its descriptor");
    for (size_t i = 0; i < options->joins; i++) {
        int fd = open(options->join[i], O_WRONLY | O_CLOEXEC);
        if (fd < 0)
            fail("open", options->join[i]);
        enter_group(fd, options->join[i]);
    }
}

static bool is_below_tmp(const char *path)
{
    return strncmp(path, "/tmp/", strlen("/tmp/")) == 0;
}

bool has_groups_below_tmp(const struct options *options)
{
    for (size_t i = 0; i < options->joins; i++)
        if (is_below_tmp(options->join[i]))
            return true;
    for (size_t i = 0; i < options->opens; i++)
        if (is_below_tmp(options->open[i].path))
            return true;
    return false;
}
