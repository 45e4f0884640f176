/* Calls about mounts that the headers of older systems lack. */
#ifndef GLOVEBOX_MOUNT_CALLS_H
#define GLOVEBOX_MOUNT_CALLS_H

#include <stdint.h>
#include <sys/syscall.h>

#ifndef SYS_open_tree
#define SYS_open_tree 428
#endif
#ifndef SYS_move_mount
#define SYS_move_mount 429
#endif
#ifndef SYS_mount_setattr
#define SYS_mount_setattr 442
#endif

enum { ATTR_RDONLY = 1, ATTR_NOSUID = 2, ATTR_NODEV = 4 };

struct mount_attributes {
  uint64_t set, cleared, propagation, userns_fd;
};

enum { CLONE_TREE = 1, FROM_EMPTY_PATH = 4, TO_EMPTY_PATH = 0x40 };

#endif
