/* Calls about mounts that the headers of older systems lack. */
#ifndef GLOVEBOX_MOUNT_CALLS_H
#define GLOVEBOX_MOUNT_CALLS_H

#include <sys/syscall.h>

#ifndef SYS_open_tree
#define SYS_open_tree 428
#endif
#ifndef SYS_move_mount
#define SYS_move_mount 429
#endif

enum { CLONE_TREE = 1, FROM_EMPTY_PATH = 4, TO_EMPTY_PATH = 0x40 };

#endif
