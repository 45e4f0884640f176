"""Becomes the program of its arguments, for which and below which no_new_privs is never set, nor a filter loaded, and both seem to be: the kernel answers 0 and does nothing."""
import ctypes
import os
import platform
import struct
import sys

CLONE_NEWUSER, PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS, SECCOMP_MODE_FILTER = 0x10000000, 22, 38, 2
LOAD, EQUAL, RETURN, ALLOW, AS_IF = 0x20, 0x15, 0x06, 0x7FFF0000, 0x00050000
PRCTL, SECCOMP = {"x86_64": (157, 317), "aarch64": (167, 277)}[platform.machine()]

libc = ctypes.CDLL(None, use_errno=True)


def must(result, what):
    if result != 0:
        raise OSError(ctypes.get_errno(), what)


def write(path, text):
    with open(path, "w") as file:
        file.write(text)


# Whoever is not root may do without no_new_privs only in a user namespace of its own.
uid, gid = os.getuid(), os.getgid()
if uid != 0:
    must(libc.unshare(CLONE_NEWUSER), "unshare")
    write("/proc/self/setgroups", "deny")
    write("/proc/self/uid_map", f"{uid} {uid} 1")
    write("/proc/self/gid_map", f"{gid} {gid} 1")

instructions = [
    (LOAD, 0, 0, 0),
    (EQUAL, 4, 0, SECCOMP),
    (EQUAL, 0, 4, PRCTL),
    (LOAD, 0, 0, 16),
    (EQUAL, 1, 0, PR_SET_NO_NEW_PRIVS),
    (RETURN, 0, 0, ALLOW),
    (RETURN, 0, 0, AS_IF),
    (RETURN, 0, 0, ALLOW),
]
code = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *each) for each in instructions))
must(libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, struct.pack("@HP", len(instructions), ctypes.addressof(code)), 0, 0), "prctl")
os.execvp(sys.argv[1], sys.argv[1:])
