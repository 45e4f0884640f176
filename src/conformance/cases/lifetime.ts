import { ensure, ensureExited, ensureRejects, ensureSame, rejectionOf, show } from '../check.js'
import { markedSleep, pause, until, withSandbox } from '../guest.js'
import { ensureAppears, ensureLeavesNothing, ensureNoProcess } from '../leftovers.js'
import type { Case, Subject } from '../subject.js'

/** A tree that tries to be forgotten: a session of its own, a double fork, no descriptors, no way to hang it up. */
function hidingTree(marker: string): string {
  return `(setsid sh -c 'trap "" HUP TERM INT; exec </dev/null >/dev/null 2>&1; sleep ${marker} & sleep ${marker}' &) ; sleep ${marker} & echo up; wait`
}

export const lifetimeCases: readonly Case[] = [
  {
    id: 'lifetime/close-twice',
    name: 'closing twice is quiet, one after the other and at once',
    run: async (subject) => {
      const first = await subject.open()
      ensureExited(await first.run(['true']))
      await first.close()
      await first.close()
      const second = await subject.open()
      await Promise.all([second.close(), second.close(), second.close()])
      return 'quiet'
    },
  },
  {
    id: 'lifetime/run-after-close',
    name: 'a run in a closed sandbox is refused as closed',
    run: async (subject) => {
      const sandbox = await subject.open()
      await sandbox.close()
      const codes = subject.depth === 'driver' ? (['closed', 'broken'] as const) : (['closed', 'not-found'] as const)
      return (await ensureRejects(sandbox.run(['true']), codes)).message
    },
  },
  {
    id: 'lifetime/close-during-run',
    name: 'closing during a run ends the run, and no process survives',
    run: async (subject) => {
      const sandbox = await subject.open()
      const { marker } = markedSleep()
      const ending = rejectionOf(sandbox.run(['sh', '-c', hidingTree(marker)]))
      await ensureAppears(subject, marker, sandbox)
      await sandbox.close()
      await ensureNoProcess(subject, marker)
      return show(await ending)
    },
  },
  {
    id: 'lifetime/run-leaves-nothing',
    name: 'a sandbox with a hiding process tree, files and a run cut short leaves nothing at all',
    run: async (subject) => {
      const { marker } = markedSleep()
      await ensureLeavesNothing(subject, async () => {
        const sandbox = await subject.open()
        ensureExited(await sandbox.run(['sh', '-c', 'mkdir -p a/b/c && echo x >a/b/c/d && mkfifo pipe && ln -s / root && chmod 000 a/b']))
        ensureExited(await sandbox.run(['sh', '-c', `setsid sleep ${marker} >/dev/null 2>&1 </dev/null & exit 0`]))
        const cut = rejectionOf(sandbox.run(['sh', '-c', hidingTree(marker)]))
        await ensureAppears(subject, marker, sandbox)
        await sandbox.close()
        await cut
      })
      await ensureNoProcess(subject, marker)
      return 'no process, mount, cgroup, file or descriptor'
    },
  },
  {
    id: 'lifetime/failed-runs-leave-nothing',
    name: 'programs that do not start, stop themselves or die leave nothing',
    run: async (subject) => {
      await ensureLeavesNothing(subject, () =>
        withSandbox(subject, async (sandbox) => {
          await sandbox.run(['/no/such/program'])
          await sandbox.run(['sh', '-c', 'kill -9 $$'])
          const stopped = await sandbox.start(['sh', '-c', 'kill -STOP $$'])
          stopped.ended.catch(() => undefined)
        }),
      )
      return 'nothing'
    },
  },
  {
    id: 'lifetime/awkward-files',
    name: 'deep trees, unreadable folders and names that are not text are cleared away',
    run: async (subject) => {
      const script = `import os
os.mkdir(b'bad\\xff\\nname'); open(b'bad\\xff\\nname/x', 'w').close(); os.chmod(b'bad\\xff\\nname', 0)
for _ in range(300):
    os.mkdir('d' * 60); os.chdir('d' * 60)`
      await ensureLeavesNothing(subject, () =>
        withSandbox(subject, async (sandbox) => {
          ensureExited(await sandbox.run(['/usr/bin/python3', '-I', '-S', '-c', script]))
        }),
      )
      return 'a path of 18,000 bytes and a folder of mode 000'
    },
  },
  {
    id: 'lifetime/abort-before-create',
    name: 'a create that was aborted beforehand rejects with the reason, and nothing is made',
    run: async (subject) => {
      const reason = new Error('changed my mind')
      await ensureLeavesNothing(subject, async () => {
        const error = await rejectionOf(subject.open({}, { signal: AbortSignal.abort(reason) }))
        ensure(error === reason, 'must reject with the reason', error)
      })
      return reason.message
    },
  },
  {
    id: 'lifetime/abort-during-create',
    name: 'a create that is aborted at any moment rejects with the reason and leaves nothing',
    run: async (subject) => {
      const outcomes: string[] = []
      await ensureLeavesNothing(subject, async () => {
        for (const afterMs of [0, 2, 5, 10, 20, 40]) outcomes.push(await abortedCreate(subject, afterMs))
      })
      ensure(outcomes.includes('aborted'), 'at least one must have been aborted', outcomes)
      return outcomes.join(' ')
    },
  },
  {
    id: 'lifetime/abort-before-run',
    name: 'a run that was aborted beforehand rejects with the reason and never starts',
    needs: ['engine'],
    run: (subject) =>
      withSandbox(subject, async (sandbox) => {
        const reason = new Error('changed my mind')
        const error = await rejectionOf(sandbox.run(['touch', 'started'], { signal: AbortSignal.abort(reason) }))
        ensure(error === reason, 'must reject with the reason', error)
        ensureSame(ensureExited(await sandbox.run(['ls'])), '', 'what is in the workspace')
        return reason.message
      }),
  },
  {
    id: 'lifetime/abort-during-run',
    name: 'aborting a run rejects with the reason, kills its whole tree, and the sandbox goes on',
    needs: ['engine'],
    run: (subject) =>
      withSandbox(subject, async (sandbox) => {
        const { marker } = markedSleep()
        const controller = new AbortController()
        const ending = rejectionOf(sandbox.run(['sh', '-c', hidingTree(marker)], { signal: controller.signal }))
        await ensureAppears(subject, marker, sandbox)
        const reason = new Error('enough')
        controller.abort(reason)
        const error = await ending
        ensure(error === reason, 'must reject with the reason', error)
        const gone = await until(async () => !(await subject.host.snapshot()).processes.some(({ command }) => command.includes(marker)))
        ensure(gone, 'the tree must be gone', marker)
        ensureExited(await sandbox.run(['true']))
        return 'rejected with the reason, tree gone, next run fine'
      }),
  },
  {
    id: 'lifetime/kill-tree',
    name: 'killing a program kills all its descendants, also those that hide, and returns when none is left',
    run: (subject) =>
      withSandbox(subject, async (sandbox) => {
        const { marker } = markedSleep()
        const process = await sandbox.start(['sh', '-c', hidingTree(marker)])
        await ensureAppears(subject, marker, sandbox)
        await pause(50)
        await process.kill()
        await ensureNoProcess(subject, marker, sandbox)
        for await (const _ of process.output) continue
        const { outcome } = await process.ended
        ensure(outcome.kind === 'killed' || (outcome.kind === 'signaled' && outcome.signal === 'SIGKILL'), 'must end as killed', outcome)
        ensureExited(await sandbox.run(['true']))
        return show(outcome)
      }),
  },
  {
    id: 'lifetime/expiry',
    name: 'a sandbox whose lifetime is over ends its run, answers expired, and leaves nothing',
    needs: ['engine'],
    run: async (subject) => {
      const { marker } = markedSleep()
      await ensureLeavesNothing(subject, async () => {
        const sandbox = await subject.open({ lifetime: '3s' })
        const startedAt = performance.now()
        await ensureRejects(sandbox.run(['sh', '-c', hidingTree(marker)]), ['expired'])
        ensure(performance.now() - startedAt < 20_000, 'the run must end with the lifetime', performance.now() - startedAt)
        await ensureRejects(sandbox.run(['true']), ['expired', 'not-found'])
        await sandbox.close()
      })
      await ensureNoProcess(subject, marker)
      return 'expired, nothing left'
    },
  },
]

async function abortedCreate(subject: Subject, afterMs: number): Promise<string> {
  const controller = new AbortController()
  const reason = new Error(`aborted after ${afterMs} ms`)
  const timer = setTimeout(() => controller.abort(reason), afterMs)
  try {
    const sandbox = await subject.open({}, { signal: controller.signal })
    await sandbox.close()
    return 'created'
  } catch (error) {
    ensure(error === reason, 'must reject with the reason', error)
    return 'aborted'
  } finally {
    clearTimeout(timer)
  }
}
