/*
 * launcher --seal PID DISK
 *
 * Makes every mount in the mount namespace of PID read-only, without devices and set-ids, but that at DISK, which can be written to. A runtime that serves files of the
 * host's may keep to that by itself, as gVisor does, and leave the mounts as they were; after this the kernel does, whatever becomes of the runtime.
 */
#include "launcher.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "mount-calls.h"

_Noreturn void seal_mounts(char **values)
{
    struct mount_attributes closed = { .set = ATTR_RDONLY | ATTR_NOSUID | ATTR_NODEV }, open = { .cleared = ATTR_RDONLY };

    enter_mounts_of(values[0]);
    if (syscall(SYS_mount_setattr, AT_FDCWD, "/", AT_RECURSIVE, &closed, sizeof closed) != 0)
        fail("seal", "/");
    if (syscall(SYS_mount_setattr, AT_FDCWD, values[1], AT_SYMLINK_NOFOLLOW, &open, sizeof open) != 0)
        fail("open", values[1]);
    _exit(0);
}
