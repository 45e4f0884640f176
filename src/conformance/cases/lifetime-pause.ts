import { bytesOf, ensure, ensureExited, ensureRejects, ensureSame } from '../check.js'
import { markedSleep, pause, python, until, withSandbox } from '../guest.js'
import { ensureAppears, ensureLeavesNothing, ensureNoProcess } from '../leftovers.js'
import type { Case, SubjectProcess } from '../subject.js'

/** Prints a line every ten milliseconds from each of three processes, one of which left its session. */
const ticking = `
import os, sys, time
for number in range(2):
    if os.fork() == 0:
        if number == 1: os.setsid()
        break
end = time.time() + 35
while time.time() < end:
    os.write(1, b'.')
    time.sleep(0.01)
`

/** How many bytes were printed so far. */
function countOutput(process: SubjectProcess): () => number {
  let count = 0
  void (async () => {
    for await (const event of process.output) count += event.bytes.length
  })().catch(() => undefined)
  return () => count
}

/** What was printed before may still be on its way: looks until it has stayed the same for many looks, or gives up. */
async function settled(printed: () => number): Promise<boolean> {
  let [last, same] = [printed(), 0]
  return until(() => {
    same = printed() === last ? same + 1 : 0
    last = printed()
    return Promise.resolve(same >= 20)
  })
}

export const pauseCases: readonly Case[] = [
  {
    id: 'pause/stands-still',
    name: 'nothing of a paused sandbox runs, and all of it goes on afterwards',
    needs: ['feature:pause'],
    run: (subject) =>
      withSandbox(subject, async (sandbox) => {
        const process = await sandbox.start(python(ticking))
        const printed = countOutput(process)
        ensure(await until(() => Promise.resolve(printed() > 30)), 'the program must print before it is paused', printed())
        await sandbox.pause()
        ensure(await settled(printed), 'what is printed must come to an end when it is paused', printed())
        const before = printed()
        await pause(600)
        ensureSame(printed() - before, 0, 'what was printed while it was paused')
        await sandbox.resume()
        ensure(await until(() => Promise.resolve(printed() > before + 30)), 'the program must go on', printed() - before)
        await process.kill()
        return `${before} before, ${printed() - before} after`
      }),
  },
  {
    id: 'pause/uses-no-processor',
    name: 'a busy loop uses no processor time while it is paused',
    needs: ['engine', 'feature:pause', 'limit:cpuTime'],
    run: (subject) =>
      withSandbox(subject, async (sandbox) => {
        const process = await sandbox.start(python('while True: pass'))
        const used = async (): Promise<number> => (await sandbox.usage?.())?.cpuMs ?? 0
        ensure(await until(async () => (await used()) > 50), 'the loop must be busy before it is paused', await used())
        await sandbox.pause()
        const before = await used()
        await pause(500)
        ensureSame((await used()) - before, 0, 'the processor time that was used')
        await sandbox.resume()
        ensure(await until(async () => (await used()) > before + 50), 'the loop must go on', await used())
        await process.kill()
        return `${before} ms`
      }),
  },
  {
    id: 'pause/closed-while-paused',
    name: 'a sandbox that is closed while it is paused leaves nothing, whatever hid in it',
    needs: ['feature:pause'],
    run: async (subject) => {
      const { marker } = markedSleep()
      await ensureLeavesNothing(subject, async () => {
        const sandbox = await subject.open()
        ensureExited(await sandbox.run(['sh', '-c', `(setsid sh -c 'trap "" HUP TERM INT; sleep ${marker} & sleep ${marker}' >/dev/null 2>&1 </dev/null &)`]))
        await sandbox.pause()
        await sandbox.close()
      })
      await ensureNoProcess(subject, marker)
      return 'nothing is left'
    },
  },
  {
    id: 'pause/refuses-runs',
    name: 'a run in a paused sandbox is refused as a conflict, and works once it is resumed',
    needs: ['engine', 'feature:pause'],
    run: (subject) =>
      withSandbox(subject, async (sandbox) => {
        await sandbox.pause()
        const refusal = await ensureRejects(sandbox.run(['true']), ['conflict'])
        await sandbox.resume()
        ensureExited(await sandbox.run(['true']))
        return refusal.message
      }),
  },
  {
    id: 'pause/spares-wall-time',
    name: 'the time that a sandbox is paused is none of its runs',
    needs: ['engine', 'feature:pause'],
    run: (subject) =>
      withSandbox(subject, async (sandbox) => {
        const process = await sandbox.start(['sh', '-c', 'echo up; read -r line; echo "$line"'], { stdin: true, timeout: 3000 })
        const printed = countOutput(process)
        ensure(await until(() => Promise.resolve(printed() > 0)), 'the program must be up before it is paused', printed())
        await sandbox.pause()
        await pause(3200)
        await sandbox.resume()
        await process.write(bytesOf('done\n'))
        const { outcome, usage } = await process.ended
        ensureSame([outcome, usage.outputBytes], [{ kind: 'exited', code: 0 }, 8], 'its end, and how much it printed')
        ensure(usage.wallMs < 3000, 'its wall time must be less than its limit', usage.wallMs)
        return `${usage.wallMs} ms`
      }),
  },
  {
    id: 'pause/without-memory',
    name: 'paused without its memory a sandbox leaves no process, mount or group; resumed, its files and variables are back and its programs are not',
    needs: ['engine'],
    run: async (subject) => {
      const [{ marker }, running] = [markedSleep(), markedSleep()]
      const told: string[] = []
      await ensureLeavesNothing(subject, () =>
        withSandbox(
          subject,
          async (sandbox) => {
            ensureExited(
              await sandbox.run(['sh', '-c', `mkdir -m 700 d && echo kept >d/a && ln -s d/a b; (setsid sleep ${marker} >/dev/null 2>&1 </dev/null &)`]),
            )
            const ending = sandbox.run(running.argv)
            ending.catch(() => undefined)
            await ensureAppears(subject, running.marker, sandbox)
            await sandbox.pause({ memory: false })
            for (const each of [marker, running.marker]) await ensureNoProcess(subject, each)
            ensureSame((await ending).outcome.kind, 'killed', 'how a program that was running ended')
            told.push((await ensureRejects(sandbox.run(['true']), ['conflict'])).message)
            await sandbox.resume()
            ensureSame(
              ensureExited(await sandbox.run(['sh', '-c', 'cat b; find d -maxdepth 0 -printf "%m\\n"; echo $COLOR'])),
              'kept\n700\ngreen\n',
              'what is there again',
            )
            await ensureNoProcess(subject, marker)
          },
          { env: { COLOR: 'green' } },
        ),
      )
      return told.join('; ')
    },
  },
  {
    id: 'pause/refused',
    name: 'what cannot stand still is refused as unsupported, and goes on',
    needs: ['no-feature:pause'],
    run: (subject) =>
      withSandbox(subject, async (sandbox) => {
        const refusal = await ensureRejects(sandbox.pause(), ['unsupported'])
        ensureExited(await sandbox.run(['true']))
        return refusal.message
      }),
  },
]
