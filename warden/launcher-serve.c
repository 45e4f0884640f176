/*
 * launcher --serve NAME OWNER
 *
 * Launches cells for one engine: to fork this small process takes a fraction of what it takes to fork the engine's, which has much memory and many descriptors.
 *
 *   engine ── launcher --serve ── launcher ═exec═ bwrap (monitor) ── …
 *
 * The streams of a cell are connections of the engine's to the abstract socket NAME, because it has no way to hand a descriptor over. Each begins with its cell's
 * number and its place (0, 1, 2 and up); only those of the process OWNER are listened to. What to launch is told on stdin, and launched once all its streams are there.
 * Numbers are u32 of this machine.
 *
 *   stdin:  cell, 1, length, streams and arguments, each with a NUL at its end: launch
 *           cell, 2, 4, signal: to the cell's monitor, if it is still there
 *           cell, 3, 0: nothing will be launched, and what came of its streams is closed
 *   stdout: cell, 1, pid: launched. cell, 2, status: exited. cell, 3, signal: killed. cell, 4, errno: could not be launched
 *
 * Where the arguments name a runtime by --copied, it is started from a copy in memory that the server keeps, and makes anew when the file is another.
 *
 * It ends with its stdin or its owner, and with it every cell that it launched.
 */
#include "launcher.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "launcher-cells.h"

enum {
    MOST_BYTES = 1 << 20,
    HEADER_BYTES = 3 * sizeof(uint32_t),
};
enum request { LAUNCH = 1, SIGNAL = 2, FORGET = 3 };

struct server {
    struct service service;
    pid_t owner;
    int listener;
    int children;
    struct cell *cells;
    char *told;
    size_t told_length;
};

static void take_launch(struct server *server, uint32_t id, const char *payload, uint32_t length)
{
    struct cell *cell = cell_of(&server->cells, id);
    uint32_t streams;

    errno = EPROTO;
    if (length <= sizeof streams || payload[length - 1] != '\0' || cell->streams != 0)
        fail("understand", "what to launch");
    memcpy(&streams, payload, sizeof streams);
    if (streams < FEWEST_STREAMS || streams > MOST_STREAMS)
        fail("understand", "how many streams");
    cell->streams = streams;
    cell->length = length - (uint32_t)sizeof streams;
    cell->words = allocate(cell->length);
    memcpy(cell->words, payload + sizeof streams, cell->length);
    launch_when_complete(&server->cells, cell, &server->service);
}

static void take_request(struct server *server, const uint32_t *header, const char *payload)
{
    struct cell **found = find_cell(&server->cells, header[0]);
    uint32_t number;

    if (header[1] == LAUNCH) {
        take_launch(server, header[0], payload, header[2]);
    } else if (header[1] == SIGNAL && header[2] == sizeof number) {
        memcpy(&number, payload, sizeof number);
        /* Nobody else can have its pid before its end was heard of here. */
        if (*found != NULL && (*found)->pid != 0)
            kill((*found)->pid, (int)number);
    } else if (header[1] == FORGET && header[2] == 0) {
        if (*found != NULL && (*found)->pid == 0)
            forget_cell(found);
    } else {
        errno = EPROTO;
        fail("understand", "request");
    }
}

static void hear_owner(struct server *server)
{
    ssize_t got = read(STDIN_FILENO, server->told + server->told_length, HEADER_BYTES + MOST_BYTES - server->told_length);
    if (got < 0 && (errno == EINTR || errno == EAGAIN))
        return;
    if (got <= 0)
        _exit(0);
    server->told_length += (size_t)got;
    size_t at = 0;
    for (uint32_t header[3]; server->told_length - at >= HEADER_BYTES; at += HEADER_BYTES + header[2]) {
        memcpy(header, server->told + at, HEADER_BYTES);
        errno = EMSGSIZE;
        if (header[2] > MOST_BYTES)
            fail("understand", "request");
        if (server->told_length - at < HEADER_BYTES + header[2])
            break;
        take_request(server, header, server->told + at + HEADER_BYTES);
    }
    server->told_length -= at;
    memmove(server->told, server->told + at, server->told_length);
}

static bool is_owners(const struct server *server, int fd)
{
    struct ucred peer;
    socklen_t length = sizeof peer;
    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 && peer.pid == server->owner && peer.uid == getuid();
}

static void take_stream(struct server *server, int fd, const uint32_t *name)
{
    struct cell *cell = cell_of(&server->cells, name[0]);
    if (name[1] >= MOST_STREAMS || cell->stream[name[1]] >= 0 || cell->pid != 0) {
        errno = EPROTO;
        fail("understand", "stream");
    }
    cell->stream[name[1]] = fd;
    launch_when_complete(&server->cells, cell, &server->service);
}

/* Its owner says right after connecting what a connection is for, so that is waited for. */
static void meet_stream(struct server *server)
{
    uint32_t name[2];
    int fd = accept4(server->listener, NULL, NULL, SOCK_CLOEXEC);
    if (fd < 0)
        return;
    if (is_owners(server, fd) && recv(fd, name, sizeof name, MSG_WAITALL) == sizeof name)
        take_stream(server, fd, name);
    else
        close(fd);
}

static void bury_children(struct server *server)
{
    struct signalfd_siginfo ignored;
    int status;

    while (read(server->children, &ignored, sizeof ignored) > 0)
        continue;
    for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;) {
        struct cell **at = &server->cells;
        while (*at != NULL && (*at)->pid != pid)
            at = &(*at)->next;
        if (*at == NULL)
            continue;
        tell((*at)->id, WIFEXITED(status) ? EXITED : KILLED, WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
        forget_cell(at);
    }
}

static int listen_at(const char *name)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    const size_t length = sizeof address.sun_path - 1;

    /* All that there is room for, because not everyone means the same by a shorter one. */
    errno = EINVAL;
    if (strlen(name) != length)
        fail("listen at", name);
    /* Abstract: it is on no disk, and nobody in another network namespace can reach it. */
    memcpy(address.sun_path + 1, name, length);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof address) != 0 || listen(fd, 4096) != 0)
        fail("listen at", name);
    return fd;
}

static int watch_children(void)
{
    sigset_t watched;
    sigemptyset(&watched);
    sigaddset(&watched, SIGCHLD);
    if (sigprocmask(SIG_BLOCK, &watched, NULL) != 0)
        fail("block", "signals");
    int fd = signalfd(-1, &watched, SFD_NONBLOCK | SFD_CLOEXEC);
    if (fd < 0)
        fail("watch", "children");
    return fd;
}

void serve(char **values)
{
    struct server server = { .service = { .values = values }, .owner = getppid(), .told = allocate(HEADER_BYTES + MOST_BYTES) };

    if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) != 0)
        fail("set", "parent death signal");
    errno = ESRCH;
    if (strtol(values[1], NULL, 10) != server.owner || getppid() != server.owner)
        fail("find", "owner");
    /* A Ctrl-C at the owner's terminal is the owner's affair. */
    leave_session();
    server.children = watch_children();
    server.listener = listen_at(values[0]);
    tell(0, LAUNCHED, getpid());
    for (;;) {
        struct pollfd polled[] = { { .fd = STDIN_FILENO, .events = POLLIN }, { .fd = server.children, .events = POLLIN }, { .fd = server.listener, .events = POLLIN } };
        if (poll(polled, sizeof polled / sizeof *polled, -1) < 0 && errno != EINTR)
            fail("wait for", "requests");
        if (polled[0].revents != 0)
            hear_owner(&server);
        if (polled[1].revents != 0)
            bury_children(&server);
        if (polled[2].revents != 0)
            meet_stream(&server);
    }
}
