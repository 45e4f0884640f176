import type { DriverLimit } from '../../contract/driver.js'
import type { LimitsInput } from '../../contract/limits.js'
import { tiers } from '../../contract/spec-words.js'
import { ensure, ensureExited, ensureRejects, ensureSame } from '../check.js'
import { askPython, python, withSandbox } from '../guest.js'
import { ensureLeavesNothing } from '../leftovers.js'
import type { Case } from '../subject.js'

const MiB = 2 ** 20

/** A statement of each limit that any driver which enforces it can hold. */
const statements: Readonly<Record<DriverLimit, LimitsInput>> = {
  memory: { memory: '64m' },
  cpus: { cpus: 0.5 },
  cpuTime: { cpuTime: '5s' },
  disk: { disk: '2m' },
  inodes: { inodes: 200 },
  fileSize: { fileSize: '1m' },
  openFiles: { openFiles: 64 },
  readRate: { readRate: '16m' },
  writeRate: { writeRate: '16m' },
  processes: { processes: 16 },
}

/** Writes until it may not, and says how far it came and why it stopped. */
const fill = `import os, sys, json, errno
total, reason = 0, 'none'
try:
    with open(sys.argv[1], 'wb', buffering=0) as f:
        while total < 64 << 20: total += f.write(b'x' * 65536)
except OSError as e: reason = errno.errorcode[e.errno]
print(json.dumps([total, reason]))`

const makeFiles = `import sys, json, errno
n, reason = 0, 'none'
try:
    while n < 20000:
        open('%s/i%d' % (sys.argv[1], n), 'w').close(); n += 1
except OSError as e: reason = errno.errorcode[e.errno]
print(json.dumps([n, reason]))`

const forkMany = `import os, json, errno, time
n, reason = 0, 'none'
try:
    while n < 200:
        if os.fork() == 0: time.sleep(5); os._exit(0)
        n += 1
except OSError as e: reason = errno.errorcode[e.errno]
print(json.dumps([n, reason]), flush=True)
os._exit(0)`

function refusalCase(limit: DriverLimit): Case {
  return {
    id: `limits/${limit}-refused`,
    name: `a stated ${limit} limit that nothing enforces is refused, and nothing starts`,
    needs: ['engine', `no-limit:${limit}`],
    run: async (subject) => {
      let message = ''
      await ensureLeavesNothing(subject, async () => {
        const error = await ensureRejects(subject.open({ limits: statements[limit] }), ['unsupported'])
        ensure(error.message.includes(limit), `the message must name ${limit}`, error)
        message = error.message
      })
      return message
    },
  }
}

function maximumCase(limit: Extract<DriverLimit, 'disk' | 'memory'>): Case {
  return {
    id: `limits/${limit}-beyond-refused`,
    name: `a ${limit} limit beyond what is enforceable here is refused`,
    needs: ['engine', `limit:${limit}`],
    run: async (subject) => {
      const enforcement = subject.probe.limits[limit]
      if (!enforcement.enforced || enforcement.max === undefined) return 'no bound was declared'
      const error = await ensureRejects(subject.open({ limits: { [limit]: enforcement.max + MiB } }), ['unsupported'])
      ensure(error.message.includes(limit), `the message must name ${limit}`, error)
      return error.message
    },
  }
}

const refusals: readonly DriverLimit[] = ['memory', 'cpus', 'disk', 'processes']

export const cellLimitCases: readonly Case[] = [
  ...refusals.map(refusalCase),
  maximumCase('disk'),
  maximumCase('memory'),
  {
    id: 'limits/disk-enforced',
    name: 'all that is writable shares one disk limit; beyond it is ENOSPC, and the cell goes on',
    needs: ['limit:disk'],
    run: (subject) =>
      withSandbox(
        subject,
        async (sandbox) => {
          const seen: string[] = []
          for (const folder of ['.', ...(subject.probe.isolates ? ['/tmp', '/var/tmp', '/dev/shm', '/home/user'] : [])]) {
            const [total, reason] = await askPython<[number, string]>(sandbox, fill, { args: [`${folder}/fill`] })
            ensure(reason === 'ENOSPC' && total <= 2 * MiB, `${folder} must be full within 2 MiB`, [total, reason])
            seen.push(`${folder} ${total}`)
          }
          ensureSame(
            seen.slice(1).every((line) => line.endsWith(' 0')),
            true,
            'that the first fill left nothing for the others',
          )
          ensureExited(await sandbox.run(['sh', '-c', 'rm fill && echo again >again']))
          return seen.join(', ')
        },
        { limits: { disk: '2m' } },
      ),
  },
  {
    id: 'limits/inodes-enforced',
    name: 'empty files end in ENOSPC too',
    needs: ['limit:disk'],
    run: (subject) =>
      withSandbox(
        subject,
        async (sandbox) => {
          const [count, reason] = await askPython<[number, string]>(sandbox, makeFiles, { args: ['.'] })
          ensureSame(reason, 'ENOSPC', 'why it stopped')
          return `${count} files, then ENOSPC`
        },
        { limits: { disk: '2m' } },
      ),
  },
  {
    id: 'limits/processes-enforced',
    name: 'a program that forks without end is stopped by EAGAIN, and the sandbox goes on',
    needs: ['limit:processes'],
    run: (subject) =>
      withSandbox(
        subject,
        async (sandbox) => {
          const forking = await sandbox.start(python(forkMany))
          let printed = ''
          for await (const event of forking.output) printed += new TextDecoder().decode(event.bytes)
          await forking.kill()
          const [count, reason] = JSON.parse(printed) as [number, string]
          ensure(reason === 'EAGAIN' && count >= 4 && count <= 16, 'must be stopped by EAGAIN within 16 processes', [count, reason])
          ensureExited(await sandbox.run(['true']))
          return `${count} forks, then EAGAIN`
        },
        { limits: { processes: 16 } },
      ),
  },
  {
    id: 'limits/memory-enforced',
    name: 'a program that takes more memory than its limit ends as out-of-memory, and the sandbox goes on',
    needs: ['limit:memory', 'engine'],
    run: (subject) =>
      withSandbox(
        subject,
        async (sandbox) => {
          const result = await sandbox.run(python("block = bytearray(b'x') * (256 << 20); print(len(block))"))
          ensureSame(result.outcome, { kind: 'out-of-memory', limitBytes: 64 * MiB }, 'the outcome')
          ensureExited(await sandbox.run(['true']))
          return 'out-of-memory at 64 MiB'
        },
        { limits: { memory: '64m', disk: '2m' } },
      ),
  },
  {
    id: 'limits/cpus-enforced',
    name: 'four busy threads get no more processor time than the limit',
    needs: ['limit:cpus'],
    run: (subject) =>
      withSandbox(
        subject,
        async (sandbox) => {
          const script =
            'import os, time\nfor _ in range(2): os.fork()\nend = time.monotonic() + 2\nwhile time.monotonic() < end: pass\nwhile True:\n  try: os.wait()\n  except OSError: break'
          const { usage } = await sandbox.run(python(script))
          const cpuMs = usage.cpuUserMs + usage.cpuSystemMs
          ensure(cpuMs <= usage.wallMs * 0.5 * 1.1 + 150, 'processor time must be at most half of the wall time', usage)
          return `${Math.round(cpuMs)} ms in ${Math.round(usage.wallMs)} ms`
        },
        { limits: { cpus: 0.5 } },
      ),
  },
  {
    id: 'limits/tier-refused',
    name: 'a tier above what the driver has is refused',
    needs: ['engine'],
    run: async (subject) => {
      const above = tiers[tiers.indexOf(subject.probe.tier) + 1]
      if (above === undefined) return 'there is no tier above'
      const error = await ensureRejects(subject.open({ minTier: above }), ['unsupported', 'unavailable'])
      ensure(error.message.includes(above), `the message must name ${above}`, error)
      return error.message
    },
  },
  {
    id: 'limits/unknown-driver',
    name: 'a driver that does not exist is refused by its name',
    needs: ['engine'],
    run: async (subject) => {
      const error = await ensureRejects(subject.open({ driver: 'no-such-driver' }), ['invalid', 'unsupported', 'unavailable', 'not-found'])
      ensure(error.message.includes('no-such-driver'), 'the message must name it', error)
      return error.message
    },
  },
]
