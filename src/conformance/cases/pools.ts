import { setTimeout as sleep } from 'node:timers/promises'
import { ensure, ensureExited, ensureSame, text } from '../check.js'
import type { Case, Subject, SubjectPool } from '../subject.js'

/** Everywhere that the next one could find something; without walls all have the same folders but the one that runs start in. */
function placesOf({ probe }: Subject): string {
  return probe.isolates ? '. /tmp "$HOME"' : '.'
}

async function withPool<T>(subject: Subject, use: (pool: SubjectPool) => Promise<T>): Promise<T> {
  ensure(subject.pool !== undefined, 'an engine must keep sandboxes ready', subject.name)
  const pool = await subject.pool({ size: 1 })
  try {
    return await use(pool)
  } finally {
    await pool.close()
  }
}

export const poolCases: readonly Case[] = [
  {
    id: 'pools/never-used-again',
    name: 'a sandbox that was used is never handed to anyone again: the next one is another, and finds nothing of it',
    needs: ['engine'],
    run: (subject) =>
      withPool(subject, async (pool) => {
        const places = placesOf(subject)
        const plant = `for place in ${places}; do echo planted > "$place/planted"; done; sleep 40 >/dev/null 2>&1 & echo done`
        const look = `for place in ${places}; do test -e "$place/planted" && echo "$place"; done; exit 0`
        const seen: string[] = []
        for (let n = 0; n < 3; n += 1) {
          const { sandbox, id } = await pool.acquire()
          ensure(!seen.includes(id), 'each must be another', id)
          seen.push(id)
          ensureSame(ensureExited(await sandbox.run(look)), '', 'what the one before left')
          ensureSame(ensureExited(await sandbox.run(plant)), 'done\n', 'what this one says')
          ensure(ensureExited(await sandbox.run(look)) !== '', 'what was planted must be seen by the one who did', 'nothing')
          await sandbox.close()
        }
        return `${seen.length} sandboxes`
      }),
  },
  {
    id: 'pools/handed-out-once',
    name: 'those who ask at once get a sandbox each',
    needs: ['engine'],
    run: (subject) =>
      withPool(subject, async (pool) => {
        const taken = await Promise.all(Array.from({ length: 4 }, () => pool.acquire()))
        ensureSame(new Set(taken.map(({ id }) => id)).size, 4, 'the sandboxes handed out')
        for (const { sandbox } of taken) await sandbox.close()
        return '4 sandboxes'
      }),
  },
  {
    id: 'pools/one-shots-apart',
    name: 'what one run of a pool writes, the next does not see',
    needs: ['engine'],
    run: (subject) =>
      withPool(subject, async (pool) => {
        const write = await pool.run('test ! -e own && echo mine > own && cat own')
        ensureSame([write.outcome, text(write.stdout)], [{ kind: 'exited', code: 0 }, 'mine\n'], 'what the first run sees')
        const read = await pool.run('test ! -e own && echo nothing')
        ensureSame([read.outcome, text(read.stdout)], [{ kind: 'exited', code: 0 }, 'nothing\n'], 'what the next run sees')
        return 'two runs'
      }),
  },
  {
    id: 'pools/python-again',
    name: 'Python in a pool is the same each time, whether its interpreter was begun ahead or not',
    needs: ['engine'],
    run: (subject) =>
      withPool(subject, async (pool) => {
        const open = '[n for n in range(3, 32) if os.path.exists(f"/proc/self/fd/{n}")]'
        const code = `import os, sys\nprint(sys.argv, __name__, os.path.exists("own"), ${open})\nopen("own", "w").write("x")\nsys.exit("over")`
        for (let n = 0; n < 4; n += 1) {
          const { outcome, stdout, stderr } = await pool.run(['/usr/bin/python3', '-c', code, 'a b'])
          ensureSame([outcome, text(stdout), text(stderr)], [{ kind: 'exited', code: 1 }, "['-c', 'a b'] __main__ False []\n", 'over\n'], `run ${n + 1}`)
          // While nobody asks the next is made ready.
          await sleep(100)
        }
        return '4 runs'
      }),
  },
  {
    id: 'pools/told',
    name: 'the receipt of a sandbox that was made ahead says so, and its times begin when it is handed out',
    needs: ['engine'],
    run: (subject) =>
      withPool(subject, async (pool) => {
        const before = Date.now()
        const { sandbox } = await pool.acquire()
        ensureExited(await sandbox.run(['true']))
        const receipt = await sandbox.receipt?.()
        ensureSame([receipt?.fresh, receipt?.pooled, receipt?.runs.length], ['cell', true, 1], 'what is told')
        ensure(receipt !== undefined && Date.parse(receipt.createdAt) >= before, 'it must not be older than the call', receipt?.createdAt)
        await sandbox.close()
        return 'pooled'
      }),
  },
]
