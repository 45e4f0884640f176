import { bytesOf, ensureBytes, ensureExited, ensureSame } from '../check.js'
import { python, withSandbox } from '../guest.js'
import type { Case } from '../subject.js'

/** Prints one number on both streams again and again, in pieces of uneven size. */
const chatter = `import os, sys
n = int(sys.argv[1])
for i in range(60):
    os.write(1, bytes([n]) * (1 + (i * 37 + n) % 900))
    os.write(2, bytes([255 - n]) * (1 + (i * 53 + n) % 700))
sys.exit(n)`

function expected(n: number): { readonly stdout: Uint8Array; readonly stderr: Uint8Array } {
  const rounds = Array.from({ length: 60 }, (_, round) => round)
  const sum = (factor: number, modulus: number) => rounds.reduce((total, round) => total + 1 + ((round * factor + n) % modulus), 0)
  return { stdout: new Uint8Array(sum(37, 900)).fill(n), stderr: new Uint8Array(sum(53, 700)).fill(255 - n) }
}

export const concurrencyCases: readonly Case[] = [
  {
    id: 'concurrency/twenty-sandboxes',
    name: 'twenty sandboxes at once each give their own answer',
    run: async (subject) => {
      const answers = await Promise.all(
        Array.from({ length: 20 }, (_, n) =>
          withSandbox(subject, async (sandbox) => {
            ensureExited(await sandbox.run(['sh', '-c', `echo ${n} >file`]))
            return ensureExited(await sandbox.run(['sh', '-c', 'cat file; ls | wc -l'])).replace(/\s+/g, ' ')
          }),
        ),
      )
      ensureSame(
        answers,
        answers.map((_, n) => `${n} 1 `),
        'the answers',
      )
      return '20 answers, 20 folders of their own'
    },
  },
  {
    id: 'concurrency/hundred-runs',
    name: 'a hundred runs at once in one sandbox each end as they should',
    run: (subject) =>
      withSandbox(subject, async (sandbox) => {
        const numbers = Array.from({ length: 100 }, (_, n) => n)
        const echo = (n: number) => sandbox.run(['sh', '-c', `read -r x; echo "$x ${n}"; exit ${n}`], { stdin: bytesOf(`in${n}\n`) })
        const results = await Promise.all(numbers.map(echo))
        for (const [n, result] of results.entries()) ensureSame(ensureExited(result, n), `in${n} ${n}\n`, `the output of run ${n}`)
        return '100 answers, 100 exit codes'
      }),
  },
  {
    id: 'concurrency/unmixed-output',
    name: 'outputs of runs side by side are never mixed',
    run: (subject) =>
      withSandbox(subject, async (sandbox) => {
        const numbers = Array.from({ length: 16 }, (_, n) => n + 1)
        const results = await Promise.all(numbers.map((n) => sandbox.run(python(chatter, String(n)))))
        for (const [at, result] of results.entries()) {
          const n = numbers[at] ?? 0
          ensureExited(result, n)
          ensureBytes(result.stdout, expected(n).stdout, `stdout of run ${n}`)
          ensureBytes(result.stderr, expected(n).stderr, `stderr of run ${n}`)
        }
        return '16 pairs of streams'
      }),
  },
  {
    id: 'concurrency/slow-reader',
    name: 'a run whose output nobody reads holds back itself and no other',
    run: (subject) =>
      withSandbox(subject, async (sandbox) => {
        const unread = await sandbox.start(['timeout', '20', 'yes'])
        unread.ended.catch(() => undefined)
        for (let n = 0; n < 5; n += 1) ensureSame(ensureExited(await sandbox.run(['echo', String(n)])), `${n}\n`, 'the output beside it')
        await unread.kill()
        return '5 runs beside a blocked one'
      }),
  },
]
