/*
 * The id maps of bwrap's child can only be written by someone privileged outside its user namespace. bwrap tells the
 * child's pid on its info descriptor and waits for a byte on its block descriptor; the mapper sits at the other ends.
 * Being privileged and there, the mapper then waits to be asked for the filter of the cell's first program, and is gone once it has answered or
 * the engine has hung up: for the engine itself to start a process for that takes longer than all the rest.
 * bwrap goes on even when the block descriptor ends without a byte, so after a failure the mapper kills the child itself.
 */
#include "launcher.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "newest-filter.h"

/* Reads to the end, because bwrap would die of a broken pipe otherwise. 0 when bwrap ended before it had a child. */
static pid_t read_child(int info)
{
    char text[4096];
    size_t length = 0;

    while (length < sizeof text - 1) {
        ssize_t got = read(info, text + length, sizeof text - 1 - length);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            break;
        length += (size_t)got;
    }
    text[length] = '\0';
    const char *key = strstr(text, "\"child-pid\":");
    return key == NULL ? 0 : (pid_t)strtol(key + strlen("\"child-pid\":"), NULL, 10);
}

static bool write_map(pid_t child, const char *name, const struct options *options)
{
    char path[64];
    char map[64];
    snprintf(path, sizeof path, "/proc/%d/%s", (int)child, name);
    int length = snprintf(map, sizeof map, "0 %u %u\n", options->map_base, options->map_count);
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    bool written = fd >= 0 && write(fd, map, (size_t)length) == length;
    if (!written)
        dprintf(STDERR_FILENO, "launcher: write %s: %s\n", path, strerror(errno));
    if (fd >= 0)
        close(fd);
    return written;
}

bool write_maps(pid_t child, const struct options *options)
{
    return write_map(child, "uid_map", options) && write_map(child, "gid_map", options);
}

/* The monitor may end while the process that is looked at does not stop: then so does this. */
static void serve_inspection(const struct options *options)
{
    struct filter_reading reading;
    char words[256];

    /* Whoever reads the cell's last words waits until nobody can add to them. */
    close(STDERR_FILENO);
    if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) != 0 || getppid() != options->self)
        return;
    pid_t pid = read_pid(options->inspect_fd);
    if (pid == 0)
        return;
    if (pid < 0) {
        reading.verb = "understand";
        reading.object = "the pid";
    } else if (read_newest_filter(pid, &reading)) {
        if (write_all(options->inspect_fd, "F", 1))
            write_all(options->inspect_fd, reading.code, reading.length * sizeof *reading.code);
        return;
    }
    int length = snprintf(words, sizeof words, "Elauncher: %s %s: %s", reading.verb, reading.object, strerror(errno));
    write_all(options->inspect_fd, words, (size_t)length);
}

static _Noreturn void run_mapper(int info, int block, const struct options *options)
{
    close(STDIN_FILENO);
    close(STDOUT_FILENO);
    pid_t child = read_child(info);
    if (child <= 1)
        _exit(0);
    bool mapped = write_maps(child, options);
    /* A monitor that died meanwhile can no longer release its child, which would wait for ever. */
    if (!mapped || write(block, "1", 1) != 1 || getppid() != options->self) {
        kill(child, SIGKILL);
        _exit(LAUNCHER_FAILED);
    }
    close(block);
    close(info);
    if (options->inspect_fd >= 0)
        serve_inspection(options);
    _exit(0);
}

struct mapper fork_mapper(const struct options *options)
{
    int info[2];
    int block[2];

    if (!options->map)
        return (struct mapper){ -1, -1 };
    if (pipe2(info, O_CLOEXEC) != 0 || pipe2(block, O_CLOEXEC) != 0)
        fail("create", "pipe");
    for (int i = 0; i < 2; i++) {
        info[i] = move_own(info[i]);
        block[i] = move_own(block[i]);
    }
    pid_t mapper = fork();
    if (mapper < 0)
        fail("fork", "mapper");
    if (mapper == 0) {
        close(info[1]);
        close(block[0]);
        run_mapper(info[0], block[1], options);
    }
    close(info[0]);
    close(block[1]);
    if (options->inspect_fd >= 0)
        close(options->inspect_fd);
    return (struct mapper){ .info = info[1], .block = block[0] };
}

pid_t fork_inspector(const struct options *options)
{
    if (options->inspect_fd < 0)
        return 0;
    pid_t inspector = fork();
    if (inspector < 0)
        fail("fork", "inspector");
    if (inspector == 0) {
        close_all_but_one(options->inspect_fd);
        close(STDIN_FILENO);
        close(STDOUT_FILENO);
        serve_inspection(options);
        _exit(0);
    }
    close(options->inspect_fd);
    return inspector;
}
