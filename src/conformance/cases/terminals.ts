import { bytesOf, ensure, ensureSame } from '../check.js'
import { comesToFront } from '../comes-to-front.js'
import { markedSleep, python, withSandbox } from '../guest.js'
import { ensureNoProcess } from '../leftovers.js'
import { keptOf, shows } from '../kept.js'
import type { Case, Subject, SubjectKept, SubjectSandbox } from '../subject.js'

const size = { cols: 80, rows: 24 }

function withTerminal(
  subject: Subject,
  command: string | readonly string[],
  use: (terminal: SubjectKept, sandbox: SubjectSandbox) => Promise<string>,
): Promise<string> {
  return withSandbox(subject, async (sandbox) => {
    const given = typeof command === 'string' ? command : [...command]
    return use(await keptOf(sandbox).keep(given, { stdin: true, terminal: size, tag: 'terminal', env: { PS1: 'ready> ', PROGRAM: comesToFront } }), sandbox)
  })
}

const shell = ['bash', '--norc', '-i']

/** Draws in the middle of a screen that it took for itself, and leaves when a key comes. */
const fullScreen = `import curses
def main(screen):
    rows, cols = screen.getmaxyx()
    screen.addstr(rows // 2, 0, f"{rows} by {cols}")
    screen.refresh()
    screen.getkey()
curses.wrapper(main)
print("left")`

/** Whether it leads its session, is in the foreground of /dev/tty, and hears its signals. */
const inFront = `import os, signal
me, here = os.getpid(), os.open('/dev/tty', os.O_RDWR)
print(os.getsid(0) == me, os.tcgetpgrp(here) == me, signal.getsignal(signal.SIGINT) is not signal.SIG_IGN)`

export const terminalCases: readonly Case[] = [
  {
    id: 'terminals/is-one',
    name: 'a program with a terminal has it for stdin, stdout and stderr, as its controlling one, of the size that was asked for',
    needs: ['engine', 'job-control'],
    run: (subject) =>
      withTerminal(subject, 'test -t 0 && test -t 1 && test -t 2 && echo shown >/dev/tty && stty size && echo "$TERM"; exit 6', async (terminal) => {
        const seen = await shows(terminal, 'xterm-256color')
        ensureSame(seen.trim().split(/\s+/), ['shown', '24', '80', 'xterm-256color'], 'what it shows')
        ensureSame((await terminal.ended).outcome, { kind: 'exited', code: 6 }, 'its end')
        return 'a terminal of 24 by 80'
      }),
  },
  {
    id: 'terminals/job-control',
    name: 'in a terminal Ctrl-Z stops what is in front, Ctrl-C ends it, and the shell behind goes on',
    needs: ['engine', 'job-control'],
    run: (subject) =>
      withTerminal(subject, shell, async (terminal) => {
        await shows(terminal, 'ready> ')
        await terminal.write(bytesOf('/usr/bin/python3 -IS -c "$PROGRAM"\r'))
        await shows(terminal, 'in front 0\r\n')
        await terminal.write(bytesOf('\x1a'))
        await shows(terminal, 'Stopped')
        await terminal.write(bytesOf('fg\r'))
        await shows(terminal, 'in front 1\r\n')
        await terminal.write(bytesOf('\x03'))
        await shows(terminal, /\^C[^]*ready> /)
        await terminal.write(bytesOf('echo code $?; exit 5\r'))
        await shows(terminal, 'code 130')
        ensureSame((await terminal.ended).outcome, { kind: 'exited', code: 5 }, 'its end')
        return 'stopped, taken up again, interrupted'
      }),
  },
  {
    id: 'terminals/resize',
    name: 'a terminal that is resized tells its program, and has its new size',
    needs: ['engine', 'job-control'],
    run: (subject) =>
      withTerminal(subject, "trap 'stty size; exit 3' WINCH; echo up; while :; do sleep 0.05; done", async (terminal) => {
        await shows(terminal, 'up')
        await terminal.resize({ cols: 132, rows: 50 })
        await shows(terminal, '50 132')
        ensureSame((await terminal.ended).outcome, { kind: 'exited', code: 3 }, 'its end')
        return '50 by 132'
      }),
  },
  {
    id: 'terminals/full-screen',
    name: 'a program that takes the whole screen draws on it, takes a key and gives it back',
    needs: ['engine'],
    run: (subject) =>
      withTerminal(subject, ['/usr/bin/python3', '-I', '-c', fullScreen], async (terminal) => {
        const seen = await shows(terminal, '24 by 80')
        ensure(seen.includes('\x1b[?1049h'), 'must ask for a screen of its own', seen)
        await terminal.write(bytesOf('q'))
        await shows(terminal, 'left')
        ensureSame((await terminal.ended).outcome, { kind: 'exited', code: 0 }, 'its end')
        return 'drawn and left'
      }),
  },
  {
    id: 'terminals/held-by-others',
    name: 'a terminal ends with its program although others hold it, and killing it ends those too',
    needs: ['engine'],
    run: (subject) => {
      const { marker } = markedSleep()
      return withTerminal(subject, `trap '' HUP; sleep ${marker} & echo left; exit 4`, async (terminal, sandbox) => {
        await shows(terminal, 'left')
        ensureSame((await terminal.ended).outcome, { kind: 'exited', code: 4 }, 'its end')
        await terminal.kill()
        await ensureNoProcess(subject, marker, sandbox)
        return 'ended, then gone'
      })
    },
  },
  {
    id: 'terminals/controlling',
    name: 'a program that is no shell and asks for nothing has its terminal as the controlling one, and is in front',
    needs: ['engine', 'job-control'],
    run: (subject) =>
      withTerminal(subject, python(inFront), async (terminal) => {
        await shows(terminal, 'True True True')
        ensureSame((await terminal.ended).outcome, { kind: 'exited', code: 0 }, 'its end')
        return 'in front'
      }),
  },
]
