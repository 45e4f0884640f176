import { execFileSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'

const runtimes = fileURLToPath(new URL('../../../runtimes/python', import.meta.url))

/** Sends itself SIGINT between two of the steps by which an execution begins, and tells where it was raised. */
const program = (steps: string) => `import os, sys
sys.path.insert(0, ${JSON.stringify(runtimes)})
sys.dont_write_bytecode = True
from glovebox_kernel.interrupts import Interrupts
interrupts = Interrupts()
interrupts.install()
interrupt = lambda: os.kill(os.getpid(), 2)
for name, step in ${steps}:
    try: step()
    except KeyboardInterrupt: print("raised at", name)
`

const printed = (steps: string) => execFileSync('/usr/bin/python3', ['-I', '-c', program(steps)], { encoding: 'utf8' })

test('an interrupt that comes once an execution is announced is raised when its code begins', () => {
  expect(printed('[("arm", interrupts.arm), ("kill", interrupt), ("begin", interrupts.begin), ("kill again", interrupt)]')).toBe(
    'raised at begin\nraised at kill again\n',
  )
})

test('one that came before is not', () => {
  expect(printed('[("kill", interrupt), ("arm", interrupts.arm), ("begin", interrupts.begin), ("end", interrupts.end), ("kill again", interrupt)]')).toBe('')
})
