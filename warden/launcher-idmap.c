/*
 * Mounts on which ids of the disk are other ids of the host. The kernel takes the map from a user namespace, which nobody needs to live in:
 * a child makes it, is given the maps, and is gone once the namespace is open here.
 */
#include "launcher.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef SYS_mount_setattr
#define SYS_mount_setattr 442
#endif

/* As in linux/mount.h, which older systems lack. */
enum { ATTRIBUTE_ID_MAP = 0x00100000 };
struct attributes {
    uint64_t set, clear, propagation, user_namespace;
};

static void write_ids(pid_t child, const char *name, unsigned first, const struct id_map *map)
{
    char path[64];
    char row[64];
    snprintf(path, sizeof path, "/proc/%d/%s", (int)child, name);
    int length = snprintf(row, sizeof row, "%u %u %u\n", first, map->host, map->count);
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0 || write(fd, row, (size_t)length) != length)
        fail("write", path);
    close(fd);
}

/* Waits for the end of the launcher's side, so that it is not left behind when the launcher fails. */
static _Noreturn void hold_namespace(int launcher)
{
    char byte = unshare(CLONE_NEWUSER) == 0 ? '1' : '0';
    _exit(write(launcher, &byte, 1) == 1 && read(launcher, &byte, 1) == 0 ? 0 : LAUNCHER_FAILED);
}

int open_id_map(const struct id_map *map)
{
    int ends[2];
    char byte = '0';
    char path[64];

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
        fail("create", "socket pair");
    pid_t child = fork();
    if (child < 0)
        fail("fork", "id map");
    if (child == 0) {
        close(ends[0]);
        hold_namespace(ends[1]);
    }
    close(ends[1]);
    if (read(ends[0], &byte, 1) != 1 || byte != '1')
        fail("unshare", "user namespace");
    write_ids(child, "uid_map", map->uid, map);
    write_ids(child, "gid_map", map->gid, map);
    snprintf(path, sizeof path, "/proc/%d/ns/user", (int)child);
    int namespace = open(path, O_RDONLY | O_CLOEXEC);
    if (namespace < 0)
        fail("open", path);
    close(ends[0]);
    waitpid(child, NULL, 0);
    return move_own(namespace);
}

/* Private as well, so that what the host mounts below the source later does not show up. */
bool map_mount(int tree, int id_map)
{
    struct attributes attributes = { .set = id_map < 0 ? 0 : ATTRIBUTE_ID_MAP, .propagation = MS_PRIVATE, .user_namespace = id_map < 0 ? 0 : (uint64_t)id_map };
    return syscall(SYS_mount_setattr, tree, "", AT_EMPTY_PATH, &attributes, sizeof attributes) == 0;
}
