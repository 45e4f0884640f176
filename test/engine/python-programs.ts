/** Of each an interpreter that was there before must say what one says that was just started. */
export const pythonPrograms: Record<string, string> = {
  'arguments and names': 'import sys; print(sys.argv, __name__, sys.path, sys.flags, sys.executable, sorted(vars()))',
  'environment and folder':
    'import os; print(os.getcwd(), {name: value for name, value in os.environ.items() if name != "PYTHONNOUSERSITE"}, os.getuid(), os.umask(0))',
  'an exception': 'def f():\n  1/0\nf()',
  'a chain of exceptions': 'try:\n  {}["a"]\nexcept KeyError as e:\n  raise ValueError("no") from e',
  'no Python': 'print("a"\n',
  'an exit status': 'raise SystemExit(3)',
  'an exit status that is no number of C': 'raise SystemExit(2 ** 70)',
  'an exit text': 'import sys; sys.exit("so long")',
  'an exit in a thread that is waited for':
    'import threading, time\ndef f():\n  time.sleep(0.1)\n  print("late")\nthreading.Thread(target=f).start()\nprint("main")',
  'what is to be done at exit': 'import atexit; atexit.register(print, "bye"); print("hi")',
  'a failure at exit': 'import atexit\ndef f():\n  1/0\natexit.register(f); print("hi")',
  'a file that nobody closed': 'out = open("/dev/stdout", "w"); out.write("kept\\n")',
  'a cycle with a finalizer': 'class A:\n  def __del__(self): print("gone")\na = A(); a.self = a',
  'an interrupt': 'import os, signal; os.kill(os.getpid(), signal.SIGINT); import time; time.sleep(5)',
  'a signal': 'import os, signal; os.kill(os.getpid(), signal.SIGTERM)',
  'how signals are': 'import signal; print([(n, signal.getsignal(n)) for n in (2, 13, 15, 17, 25)], signal.pthread_sigmask(0, []))',
  'a hook for exceptions': 'import sys\nsys.excepthook = lambda *a: print("hooked", a[0].__name__)\n1/0',
  'a hook for exceptions that fails': 'import sys\ndef hook(*a): raise ValueError("worse")\nsys.excepthook = hook\n1/0',
  'what /proc says of it': 'import os; print(open("/proc/self/comm").read(), os.stat("/proc/self/environ").st_uid, os.access("/proc/self/environ", os.R_OK))',
  'more processes': 'import multiprocessing\ndef f(n): return n * n\nwith multiprocessing.Pool(2) as pool: print(pool.map(f, range(5)))',
  'another program': 'import subprocess; print(subprocess.run(["echo", "x"], capture_output=True).stdout)',
  'text that is not ASCII': 'print("é€😀"); import sys; print(sys.stdout.encoding, sys.stdin.encoding, sys.getfilesystemencoding())',
  'a stream that is full': 'import sys; sys.stdout = open("/dev/full", "w"); print("lost")',
  limits: 'import resource; print([resource.getrlimit(n) for n in range(10)])',
  threads: 'import threading; print(threading.current_thread(), threading.active_count(), threading.main_thread().native_id == threading.get_native_id())',
}

/** Where things lie in memory is chance. */
export const unplaced = (said: object) => JSON.stringify(said).replaceAll(/0x[0-9a-f]{8,}|started \d+/g, '…')
