import { limitControls } from '../../contract/receipt.js'
import { ensure, ensureExited, ensureSame } from '../check.js'
import { python, withSandbox } from '../guest.js'
import type { Case } from '../subject.js'

export const receiptCases: readonly Case[] = [
  {
    id: 'receipts/every-limit',
    name: 'a receipt tells of every limit once: what was asked for, what is enforced, and how that is known',
    needs: ['engine'],
    run: (subject) =>
      withSandbox(
        subject,
        async (sandbox) => {
          ensureExited(await sandbox.run(['true']))
          const receipt = await sandbox.receipt?.()
          ensure(receipt !== undefined, 'an engine must give one', receipt)
          const limits = receipt.controls.filter(({ control }) => control.startsWith('limit.'))
          ensureSame(limits.map(({ control }) => control).sort(), [...limitControls].sort(), 'the limits told of')
          const time = limits.find(({ control }) => control === 'limit.time')
          ensureSame([time?.requested, time?.stated, time?.enforced], [5000, 'spec', 5000], 'the wall time')
          const bare = limits.filter(({ stated, enforced }) => stated === 'spec' && enforced === null)
          ensureSame(bare, [], 'what was stated and is not enforced')
          return `${receipt.controls.length} controls, ${receipt.controls.filter(({ verdict }) => verdict === 'proven').length} proven`
        },
        { limits: { time: '5s' } },
      ),
  },
  {
    id: 'receipts/proven',
    name: 'what a cell is made of is proven by the kernel: namespaces, ids, capabilities, filter, mounts, descriptors',
    needs: ['engine', 'isolates', 'shared-kernel'],
    run: (subject) =>
      withSandbox(subject, async (sandbox) => {
        ensureExited(await sandbox.run(['true']))
        const receipt = await sandbox.receipt?.()
        const wanted = ['namespaces', 'uid-map', 'gid-map', 'mounts', 'interfaces', 'ids', 'capabilities', 'no-new-privs', 'seccomp', 'placement', 'rlimits']
        const proven = new Set(receipt?.controls.flatMap(({ control, verdict }) => (verdict === 'proven' ? [control] : [])))
        ensureSame(
          wanted.filter((control) => !proven.has(control)),
          [],
          'what is not proven',
        )
        return [...proven].join(', ')
      }),
  },
  {
    id: 'receipts/own-kernel',
    name: 'a kernel of its own is what runs the programs: it says so inside, the wall around it is proven, and what only it says is told and not proven',
    needs: ['engine', 'own-kernel'],
    run: (subject) =>
      withSandbox(subject, async (sandbox) => {
        const inside = ensureExited(await sandbox.run(['sh', '-c', 'uname -r; cat /proc/version'])).split('\n')
        const receipt = await sandbox.receipt?.()
        ensure(receipt !== undefined, 'an engine must give one', receipt)
        ensure(!inside.some((line) => line.includes(receipt.host.kernel)), "the kernel must not be the host's", { inside, host: receipt.host.kernel })
        const verdictOf = (name: string): string | undefined => receipt.controls.find(({ control }) => control === name)?.verdict
        const wall = ['kernel', 'sentry', 'gofer', 'namespaces', 'uid-map', 'gid-map', 'mounts', 'interfaces', 'sockets']
        ensureSame(
          wall.filter((name) => verdictOf(name) !== 'proven'),
          [],
          'what of the wall is not proven',
        )
        const within = ['warden', 'ids', 'capabilities', 'seccomp', 'no-new-privs', 'rlimits', 'placement', 'filter', 'descriptors']
        const claims = within.map((name) => [name, verdictOf(name)] as const).filter(([, verdict]) => verdict !== 'told' && verdict !== 'asserted')
        ensureSame(claims, [], 'what is called more than told')
        const kernel = receipt.controls.find(({ control }) => control === 'kernel')?.enforced
        ensure(JSON.stringify(kernel).includes('"isGvisor":true'), 'its log must be the one of gVisor', kernel)
        return inside.join('; ')
      }),
  },
  {
    id: 'receipts/every-thread',
    name: 'every process and thread that runs is looked at when a receipt is asked for',
    needs: ['engine', 'isolates', 'shared-kernel'],
    run: (subject) =>
      withSandbox(subject, async (sandbox) => {
        const script =
          "import os, threading, time\nfor _ in range(3):\n  if os.fork() == 0: time.sleep(20); os._exit(0)\nfor _ in range(4): threading.Thread(target=time.sleep, args=(20,), daemon=True).start()\nprint('up', flush=True)\ntime.sleep(20)"
        const program = await sandbox.start(python(script))
        for await (const _ of program.output) break
        const receipt = await sandbox.receipt?.()
        ensureSame(receipt?.inspected, { processes: 4, threads: 8, complete: true }, 'what was looked at')
        await program.kill()
        return '4 processes, 8 threads'
      }),
  },
  {
    id: 'receipts/runs',
    name: 'a receipt tells of each run how it ended and what it used, but not what it was told',
    needs: ['engine'],
    run: (subject) =>
      withSandbox(subject, async (sandbox) => {
        ensureExited(await sandbox.run(['sh', '-c', 'exit 3; echo s3cret-argument'], { env: { TOKEN_NAME: 's3cret-value' } }), 3)
        const receipt = await sandbox.receipt?.()
        const text = JSON.stringify(receipt)
        ensure(!text.includes('s3cret'), 'no argument and no value may be in it', text)
        const [run] = receipt?.runs ?? []
        ensureSame([receipt?.runs.length, run?.outcome, run?.environment.includes('TOKEN_NAME')], [1, { kind: 'exited', code: 3 }, true], 'the run')
        return 'one run, exited with 3'
      }),
  },
]
