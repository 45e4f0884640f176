"""Tries to run a program in all the ways that an exec allow-list must hold against, and prints what came of each.

Whatever gets to run prints "ran". Standard input brings an ELF program and a library that were not in the cell before.
"""
import base64
import ctypes
import json
import mmap
import os
import shutil
import subprocess
import sys
import tempfile

PROGRAM = "/usr/bin/echo"
libc = ctypes.CDLL(None, use_errno=True)
place = tempfile.mkdtemp(dir="/workspace")
given = json.load(sys.stdin)


def in_child(act):
    """Whatever replaces the process, replaces only a child of ours."""
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        try:
            act()
        except OSError as error:
            print("refused", error.errno, flush=True)
        os._exit(0)
    os.waitpid(child, 0)


def start(path, *arguments):
    in_child(lambda: os.execv(path, [path, *arguments, "ran"]))


def content(kind="program"):
    return base64.b64decode(given[kind])


def plant(path, kind="program"):
    with open(path, "wb") as file:
        file.write(content(kind))
    os.chmod(path, 0o755)
    return path


def loader():
    return next(line.split()[-1] for line in open("/proc/self/maps") if "/ld-linux" in line)


def along_path():
    in_child(lambda: os.execvp("echo", ["echo", "ran"]))


def spawned():
    try:
        os.waitpid(os.posix_spawn(PROGRAM, ["echo", "ran"], {}), 0)
    except OSError as error:
        print("refused", error.errno)


def by_subprocess():
    try:
        subprocess.run([PROGRAM, "ran"])
    except OSError as error:
        print("refused", error.errno)


def by_shell():
    try:
        subprocess.run("echo ran", shell=True)
    except OSError as error:
        print("refused", error.errno)


def by_descriptor(flags):
    def act():
        os.execve(os.open(PROGRAM, flags), ["echo", "ran"], {})

    in_child(act)


def through_link():
    os.symlink(PROGRAM, f"{place}/link")
    start(f"{place}/link")


def copied_by_reading():
    try:
        shutil.copy(PROGRAM, f"{place}/copy")
        print("ran")
    except OSError as error:
        print("refused", error.errno)


def planted(folder):
    start(plant(f"{tempfile.mkdtemp(dir=folder)}/planted"))


def hard_linked():
    plant(f"{place}/one")
    os.mkdir(f"{place}/deep")
    os.link(f"{place}/one", f"{place}/deep/two")
    start(f"{place}/deep/two")


def loaded():
    subprocess.run([loader(), PROGRAM, "ran"])


def planted_and_loaded():
    subprocess.run([loader(), plant(f"{place}/planted"), "ran"])


def from_memory():
    def act():
        file = os.memfd_create("x", 0)
        os.write(file, content())
        os.execve(file, ["echo", "ran"], {})

    in_child(act)


def from_nameless_file():
    def act():
        file = os.open("/workspace", os.O_TMPFILE | os.O_RDWR, 0o755)
        os.write(file, content())
        again = os.open(f"/proc/self/fd/{file}", os.O_RDONLY)
        os.close(file)
        os.execve(again, ["echo", "ran"], {})

    in_child(act)


def script(interpreter, body):
    with open(f"{place}/script", "w") as file:
        file.write(f"#!{interpreter}\n{body}\n")
    os.chmod(f"{place}/script", 0o755)
    start(f"{place}/script")


def unlisted_script():
    """A script of the template's own: `which` prints where the program is, and that counts."""
    try:
        if subprocess.run(["/usr/bin/which", "echo"], capture_output=True, text=True).stdout == "/usr/bin/echo\n":
            print("ran")
    except OSError as error:
        print("refused", error.errno)


def git_alias():
    subprocess.run(["git", "-c", "alias.x=!echo ran", "x"])


def preloaded():
    library = plant(f"{place}/library.so", "library")
    subprocess.run([sys.executable, "-c", ""], env={"LD_PRELOAD": library})


def on_library_path():
    os.mkdir(f"{place}/libraries")
    plant(f"{place}/libraries/libz.so.1", "library")
    code = "try: import zlib\nexcept ImportError: print('no zlib')"
    subprocess.run([sys.executable, "-c", code], env={"LD_LIBRARY_PATH": f"{place}/libraries"})


def opened_as_library():
    try:
        ctypes.CDLL(plant(f"{place}/another.so", "library"))
    except OSError as error:
        print(error)


def mapped():
    file = os.open(plant(f"{place}/planted"), os.O_RDONLY)
    try:
        mmap.mmap(file, 4096, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_EXEC)
        print("ran")
    except OSError as error:
        print("refused", error.errno)


def made_executable_later():
    file = os.open(plant(f"{place}/planted"), os.O_RDWR)
    memory = mmap.mmap(file, 4096, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_WRITE)
    address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    if libc.mprotect(ctypes.c_void_p(address), 4096, 5) == 0:
        print("ran")
    else:
        print("refused", ctypes.get_errno())


ATTACKS = {
    "directly": lambda: start(PROGRAM),
    "along PATH": along_path,
    "by posix_spawn": spawned,
    "by subprocess": by_subprocess,
    "by a shell": by_shell,
    "by a descriptor": lambda: by_descriptor(os.O_RDONLY),
    "by a descriptor of its path": lambda: by_descriptor(os.O_PATH),
    "through a link": through_link,
    "through /proc/self/root": lambda: start("/proc/self/root" + PROGRAM),
    "through /proc/self/cwd": lambda: (os.chdir("/usr"), start("/proc/self/cwd/bin/echo")),
    "by another name": lambda: start("/bin/../bin/./echo"),
    "copied": copied_by_reading,
    "by the loader": loaded,
    "planted in /workspace": lambda: planted("/workspace"),
    "planted in /tmp": lambda: planted("/tmp"),
    "planted in /var/tmp": lambda: planted("/var/tmp"),
    "planted in /dev/shm": lambda: planted("/dev/shm"),
    "planted in home": lambda: planted(os.environ["HOME"]),
    "planted and hard-linked": hard_linked,
    "planted, by the loader": planted_and_loaded,
    "from memory": from_memory,
    "from a nameless file": from_nameless_file,
    "a script with another interpreter": lambda: script("/usr/bin/perl", "print 'ran'"),
    "a script with a listed interpreter": lambda: script("/usr/bin/python3", "print('ran')"),
    "an unlisted script": unlisted_script,
    "by an alias of git": git_alias,
    "a preloaded library": preloaded,
    "a library on the path": on_library_path,
    "a library by dlopen": opened_as_library,
    "mapped": mapped,
    "mapped and made executable later": made_executable_later,
    "on a mount": lambda: start("/mnt/tools/program"),
    "on a mount, by the loader": lambda: subprocess.run([loader(), "/mnt/tools/program", "ran"]),
}


def outcome(attack):
    """What it printed on both streams, itself and all it started."""
    ours, theirs = os.pipe()
    child = os.fork()
    if child == 0:
        os.dup2(theirs, 1)
        os.dup2(theirs, 2)
        os.close(ours)
        os.close(theirs)
        try:
            attack()
        except Exception as error:
            print("failed", repr(error))
        sys.stdout.flush()
        os._exit(0)
    os.close(theirs)
    with os.fdopen(ours) as stream:
        said = stream.read()
    os.waitpid(child, 0)
    return said.replace(place, "PLACE").strip()


print(json.dumps({name: outcome(attack) for name, attack in ATTACKS.items()}))
