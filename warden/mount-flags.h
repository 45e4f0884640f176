#ifndef GLOVEBOX_MOUNT_FLAGS_H
#define GLOVEBOX_MOUNT_FLAGS_H

/* What a mount is not allowed to do already, but for being read-only: to be said again when it is changed, or the kernel refuses, because such flags are locked in a user namespace. */
unsigned long mount_flags(const char *path);

#endif
