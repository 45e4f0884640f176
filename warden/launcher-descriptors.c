/* Which descriptors the program gets: 0, 1, 2 and those opened for it, nothing that the owner happened to have. */
#include "launcher.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

static void close_inherited(void)
{
    if (syscall(SYS_close_range, 3U, ~0U, 0) == 0)
        return;
    if (errno != ENOSYS)
        fail("close", "inherited descriptors");
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        fail("read", "descriptor limit");
    for (rlim_t fd = 3; fd < limit.rlim_max; fd++)
        close((int)fd);
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

void arrange_descriptors(const struct options *options)
{
    close_inherited();
    for (size_t i = 0; i < options->opens; i++) {
        int fd = open(options->open[i].path, O_WRONLY | O_CLOEXEC);
        if (fd < 0)
            fail("open", options->open[i].path);
        place_descriptor(move_own(fd), options->open[i].fd);
    }
}

void join_cgroups(const struct options *options)
{
    for (size_t i = 0; i < options->joins; i++) {
        int fd = open(options->join[i], O_WRONLY | O_CLOEXEC);
        if (fd < 0)
            fail("open", options->join[i]);
        /* 0 means the writer itself, in whatever pid namespace it is. */
        if (write(fd, "0", 1) != 1)
            fail("join", options->join[i]);
        close(fd);
    }
}
