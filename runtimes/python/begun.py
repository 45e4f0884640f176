# A python3 that was begun before anyone knew what it is to run. It is told once, by descriptor 3, and goes on as that program in this very process, as program.py says, which
# is sent before this. Neither descriptor is open any more when the program's code begins; until it has said so by descriptor 4, nothing of the program has run.
import marshal
import time

TOLD, ANSWERS = 3, 4


def answer(word):
    os.write(ANSWERS, word.encode() + b"\n")


def show_code(code):
    """Compiled once, it need not be again by the same interpreter in another cell."""
    magic = sys.modules["_frozen_importlib_external"].MAGIC_NUMBER
    answer(f"code {magic.hex()} {marshal.dumps(code).hex()}")


def be_told():
    """Folder, arguments and environment, in the form of RELEASE: see warden/PROTOCOL.md."""
    with open(TOLD, "rb") as file:
        told = file.read()
    if not told:
        os._exit(0)
    at = 0

    def number():
        nonlocal at
        at += 4
        return int.from_bytes(told[at - 4 : at], "little")

    def text():
        nonlocal at
        length = number()
        at += length
        return told[at - length : at]

    return text(), [os.fsdecode(text()) for _ in range(number())], [text() for _ in range(number())]


def become():
    folder, argv, environment = be_told()
    try:
        os.chdir(folder)
    except OSError:
        # Whoever started this starts the program as ever, which tells.
        os._exit(1)
    take_environment(environment)
    sys.orig_argv = argv
    answer("taken")
    os.close(ANSWERS)
    return argv


def run(names):
    import_ahead(names)
    answer(f"ready {time.process_time_ns() // 1000} {sys.executable}")
    status = execute(become())
    if status == INTERRUPTED:
        # It was told of already; an interpreter that is left so ends by the signal, once it has put everything in order.
        sys.excepthook = lambda *_: None
        raise KeyboardInterrupt
    if status != 0:
        sys.exit(status)


if sys.argv[1] == "source":
    show_code(sys._getframe().f_code)
run(sys.argv[2:])
