/*
 * A cell built without bwrap, of the same words:
 *
 *   launcher (monitor) ── first process, in namespaces of its own ═exec═ warden
 *       └─ inspector: reads the filter of one process, and exits
 *
 * Whoever may map ranges of ids may do all that bwrap does, and to start a program that looks for itself in /proc after each mount takes longer than the mounts.
 * What is asked of the kernel is the same, in the same order of rights: the monitor is dropped to an id that owns nothing before the cell exists; the first process
 * has every capability over the cell's namespaces while it makes the root, none over the host's, and keeps of them only what it is told to.
 */
#include "launcher.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "launcher-steps.h"
#include "mount-calls.h"

enum { NAMESPACES = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP, SHELL_SIGNALED = 128 };

bool can_build(struct steps *steps, const struct options *options)
{
    struct mount_attributes nothing = { 0 };
    if (!options->builds || !parse_steps(steps, options->program + 1) || !steps->unshares || steps->hostname == NULL)
        return false;
    return syscall(SYS_mount_setattr, -1, "", AT_EMPTY_PATH, &nothing, sizeof nothing) == 0 || errno != ENOSYS;
}

static void set_capabilities(uint64_t kept, uint64_t inherited)
{
    struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
    struct __user_cap_data_struct sets[2];
    for (int i = 0; i < 2; i++)
        sets[i] = (struct __user_cap_data_struct){ .effective = (uint32_t)(kept >> 32 * i), .permitted = (uint32_t)(kept >> 32 * i), .inheritable = (uint32_t)(inherited >> 32 * i) };
    if (syscall(SYS_capset, &header, sets) != 0)
        fail("set", "capabilities");
}

/* What the program starts with and can ever have. Its id is not that of root, so only ambient capabilities outlive the execve. */
static void keep_capabilities(uint64_t kept)
{
    for (unsigned long number = 0; number < 64; number++) {
        if ((kept >> number & 1) == 0 && prctl(PR_CAPBSET_DROP, number, 0, 0, 0) != 0) {
            if (errno == EINVAL)
                break; /* past the last one that this kernel knows */
            fail("bound", "capabilities");
        }
    }
    set_capabilities(kept, kept);
    for (unsigned long number = 0; number < 64; number++)
        if ((kept >> number & 1) != 0 && prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, number, 0, 0) != 0)
            fail("keep", "capabilities");
}

/* With its addresses, which the kernel gives it then. */
static void raise_loopback(void)
{
    struct ifreq request = { .ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING };
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || ioctl(fd, SIOCSIFFLAGS, &request) != 0)
        fail("raise", "loopback");
    close(fd);
}

/* Without maps nobody has an id here. Whoever writes them says so by one byte, and is gone when none comes. */
static void await_maps(int block)
{
    char byte;
    ssize_t got;
    while ((got = read(block, &byte, 1)) < 0 && errno == EINTR)
        continue;
    if (got != 1)
        _exit(LAUNCHER_FAILED);
    close(block);
}

void enter_cell(const struct steps *steps)
{
    char *environment[MOST_VARIABLES + 1] = { NULL };

    raise_loopback();
    if (sethostname(steps->hostname, strlen(steps->hostname)) != 0)
        fail("set", "host name");
    take_steps(steps);
    keep_capabilities(steps->capabilities);
    for (size_t i = 0; i < steps->variables; i++)
        environment[i] = (char *)steps->variable[i];
    execve(steps->program[0], steps->program, environment);
    fail("execute", steps->program[0]);
}

static _Noreturn void become_program(const struct steps *steps, int block)
{
    /* Before anything else: a monitor that has died by now says nothing any more. */
    if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) != 0)
        fail("set", "parent death signal");
    await_maps(block);
    enter_cell(steps);
}

/* Ends as the first process did, when the kernel has emptied its pid namespace: not before that is it waited for. */
void monitor_cell(pid_t first)
{
    int status;

    set_capabilities(0, 0);
    close_inherited_from(3);
    for (pid_t ended; (ended = waitpid(-1, &status, 0)) != first;)
        if (ended < 0 && errno != EINTR)
            fail("wait for", "cell");
    _exit(WIFEXITED(status) ? WEXITSTATUS(status) : SHELL_SIGNALED + WTERMSIG(status));
}

void keep_rights_of_builder(void)
{
    const uint64_t rights = 1ULL << CAP_SYS_ADMIN | 1ULL << CAP_SYS_CHROOT | 1ULL << CAP_SETUID | 1ULL << CAP_SETGID | 1ULL << CAP_DAC_OVERRIDE;
    set_capabilities(rights, 0);
}

/* What was staged is the cell's alone from now on. */
void go_home(int home)
{
    if (setns(home, CLONE_NEWNS) != 0)
        fail("leave", "staged mounts");
}

void build_cell(const struct options *options, const struct steps *steps, int home)
{
    int block[2];

    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
        fail("set", "no_new_privs");
    if (pipe2(block, O_CLOEXEC) != 0)
        fail("create", "pipe");
    for (int i = 0; i < 2; i++)
        block[i] = move_own(block[i]);
    pid_t first = (pid_t)syscall(SYS_clone, NAMESPACES | SIGCHLD, NULL, NULL, NULL, NULL);
    if (first < 0)
        fail("create", "namespaces");
    if (first == 0) {
        close(block[1]);
        become_program(steps, block[0]);
    }
    if (!write_maps(first, options) || write(block[1], "1", 1) != 1) {
        kill(first, SIGKILL);
        _exit(LAUNCHER_FAILED);
    }
    go_home(home);
    monitor_cell(first);
}
