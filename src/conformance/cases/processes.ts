import { bytesOf, ensure, ensureExited, ensureRejects, ensureSame, text } from '../check.js'
import { markedSleep, until, withSandbox } from '../guest.js'
import { commandsOf, ensureNoProcess } from '../leftovers.js'
import { type Kept, keptOf, outputOf, shows } from '../kept.js'
import type { Case, Subject, SubjectSandbox } from '../subject.js'

function withKept<T>(subject: Subject, use: (kept: Kept, sandbox: SubjectSandbox) => Promise<T>): Promise<T> {
  return withSandbox(subject, (sandbox) => use(keptOf(sandbox), sandbox))
}

export const processCases: readonly Case[] = [
  {
    id: 'processes/several-readers',
    name: 'a process is read by several at once, each from where it came in, and written to by any',
    needs: ['engine'],
    run: (subject) =>
      withKept(subject, async ({ keep, attach }) => {
        const first = await keep('echo before; read line; echo "after $line"', { stdin: true, tag: 'talk' })
        await shows(first, 'before')
        const [replayed, late] = [await attach('talk', { replay: true }), await attach(first.pid)]
        await late.write(bytesOf('x\n'))
        const seen = await Promise.all([first, replayed, late].map(outputOf))
        ensureSame(seen, ['before\nafter x\n', 'before\nafter x\n', 'after x\n'], 'what each of them saw')
        return 'three readers'
      }),
  },
  {
    id: 'processes/nobody-reads',
    name: 'a process that nobody reads is neither held back nor ended, and a late reader is told how much it missed',
    needs: ['engine'],
    run: (subject) =>
      withKept(subject, async ({ keep }) => {
        const process = await keep('head -c 3000000 /dev/zero; printf END')
        ensureSame((await process.ended).outcome, { kind: 'exited', code: 0 }, 'its end')
        let [missed, seen, last] = [0, 0, '']
        for await (const { bytes, dropped = 0 } of process.output) {
          missed += dropped
          seen += bytes.length
          last = text(bytes.subarray(-3))
        }
        ensureSame([missed + seen, seen, last], [3_000_003, 2 ** 20, 'END'], 'what was missed and seen, what was seen, and its end')
        return `${missed} bytes missed`
      }),
  },
  {
    id: 'processes/kill-is-effective',
    name: 'when a kill resolves, nothing of the process is left, wherever it hid',
    needs: ['engine'],
    run: (subject) =>
      withKept(subject, async ({ keep, attach }, sandbox) => {
        const { marker } = markedSleep()
        const process = await keep(`(setsid sh -c 'trap "" HUP TERM; sleep ${marker} & wait' &); sleep ${marker} & echo up; wait`)
        await shows(process, 'up')
        const sleeps = async (): Promise<number> =>
          (await commandsOf(subject, sandbox)).filter((command) => /^sleep\W/.test(command) && command.includes(marker)).length
        ensure(await until(async () => (await sleeps()) === 2), 'both of its sleeps must run', await sleeps())
        await (await attach(process.pid)).kill()
        await ensureNoProcess(subject, marker, sandbox)
        ensureSame((await process.ended).outcome, { kind: 'killed', reason: 'killed by its owner' }, 'its end')
        return 'gone'
      }),
  },
  {
    id: 'processes/list',
    name: 'the list tells of a process its tag, its state and what it uses with all that it started, and afterwards its end',
    needs: ['engine', 'shared-kernel'],
    run: (subject) =>
      withKept(subject, async ({ keep, list }) => {
        const process = await keep('(setsid sleep 30 &); sleep 30 & echo up; while :; do :; done', { tag: 'busy' })
        await shows(process, 'up')
        const hasAll = async (): Promise<boolean> => (await list()).some(({ cpuMs, processes }) => cpuMs >= 20 && processes === 3)
        ensure(await until(hasAll), 'all three processes and their time must be counted', await list())
        const [info] = await list()
        ensureSame([info?.pid, info?.tag, info?.isTerminal, info?.user], [process.pid, 'busy', false, 'user'], 'what is told of it')
        ensure((info?.memoryBytes ?? 0) > 100_000, 'what it has in memory must be counted', info)
        await process.kill()
        const [ended] = await list()
        ensureSame([ended?.state, ended?.processes, ended?.ending?.outcome.kind], ['ended', 0, 'killed'], 'what is told afterwards')
        return `${info?.memoryBytes ?? 0} bytes in ${info?.processes ?? 0} processes`
      }),
  },
  {
    id: 'processes/tags',
    name: 'a tag names one running process; a second with it is refused as a conflict, and an unknown one as not found',
    needs: ['engine'],
    run: (subject) =>
      withKept(subject, async ({ keep, attach }) => {
        const process = await keep(['sleep', '30'], { tag: 'one' })
        const { message } = await ensureRejects(keep(['true'], { tag: 'one' }), ['conflict'])
        await ensureRejects(attach('other'), ['not-found'])
        await process.kill()
        await (await keep(['true'], { tag: 'one' })).ended
        return message
      }),
  },
  {
    id: 'processes/descriptor-as-folder',
    name: 'no descriptor that a program could inherit is a folder that it can be started in',
    needs: ['isolates'],
    run: (subject) =>
      withSandbox(subject, async (sandbox) => {
        const folders = Array.from({ length: 32 }, (_, fd) => ['self', 'thread-self', '1'].map((who) => `/proc/${who}/fd/${fd}`)).flat()
        for (const cwd of folders) await ensureRejects(sandbox.run(['true'], { cwd }), ['invalid'])
        ensureSame(ensureExited(await sandbox.run(['pwd', '-P'], { cwd: '/proc/self/root/workspace' })), '/workspace\n', 'a folder that is one')
        return `${folders.length} descriptors, none of them`
      }),
  },
]
