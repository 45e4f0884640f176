/**
 * For Python. Says when it comes to the front, and how often it has gone on after a stop. It starts no programs meanwhile: a shell
 * that is stopped while it starts one waits for it to become that program, which is stopped too, and neither gets there.
 */
export const comesToFront = `import os, signal, time
turn, last = 0, None
def again(*_):
    global turn
    turn += 1
signal.signal(signal.SIGINT, signal.SIG_DFL)
signal.signal(signal.SIGCONT, again)
while True:
    now = turn, os.tcgetpgrp(0) == os.getpgrp()
    if now != last and now[1]: print("in front", turn, flush=True)
    last = now
    time.sleep(0.02)`
