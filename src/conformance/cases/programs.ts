import type { Outcome } from '../../contract/run.js'
import { ensure, ensureExited, ensureSame, text } from '../check.js'
import { askPython, withSandbox } from '../guest.js'
import type { Case, SubjectSandbox } from '../subject.js'

const printArgv = 'import sys, json, os; print(json.dumps([list(os.fsencode(a)) for a in sys.argv[1:]]))'

async function ensureArgv(sandbox: SubjectSandbox, args: readonly string[]): Promise<void> {
  const seen = await askPython<number[][]>(sandbox, printArgv, { args })
  ensureSame(
    seen.map((bytes) => new TextDecoder().decode(Uint8Array.from(bytes))),
    args,
    'the arguments',
  )
}

/** The variables every run has; what else is there was leaked. */
const fixedVariables = new Set(['PATH', 'HOME', 'USER', 'LOGNAME', 'SHELL', 'LANG', 'PWD', 'TERM', 'TMPDIR'])

function parseEnvironment(bytes: Uint8Array): Record<string, string> {
  const entries = text(bytes).split('\0').filter(Boolean)
  return Object.fromEntries(entries.map((entry) => [entry.slice(0, entry.indexOf('=')), entry.slice(entry.indexOf('=') + 1)]))
}

function ensureNotStarted(outcome: Outcome, code: 126 | 127): string {
  ensure(outcome.kind === 'not-started' && outcome.code === code, `must be not-started with ${code}`, outcome)
  ensure(outcome.reason.length > 0, 'must say why', outcome)
  return outcome.reason
}

export const programCases: readonly Case[] = [
  {
    id: 'programs/argv-literal',
    name: 'arguments reach the program as they are, whatever a shell would make of them',
    run: (subject) =>
      withSandbox(subject, async (sandbox) => {
        const args = [
          '-c',
          '--',
          '; exit 3',
          '$(id)',
          '`id`',
          '$HOME',
          '*',
          'a b',
          '',
          '\'"\\',
          'two\nlines',
          '\ttab',
          '&& false',
          '| cat',
          '> /tmp/x',
          '~',
          'ünïcode \u{1f600}',
        ]
        await ensureArgv(sandbox, args)
        return `${args.length} awkward arguments came through`
      }),
  },
  {
    id: 'programs/argv-program-name',
    name: 'a program name is a name, not a line for a shell',
    run: (subject) =>
      withSandbox(subject, async (sandbox) => {
        const names = ['echo hello', 'true;true', '$(echo true)', '-c', 'true\n']
        for (const name of names) ensureNotStarted((await sandbox.run([name])).outcome, 127)
        return `${names.length} lines were not found as programs`
      }),
  },
  {
    id: 'programs/argv-long',
    name: 'arguments of 10,000 and of 131,071 bytes, and a thousand of them, come through',
    run: (subject) =>
      withSandbox(subject, async (sandbox) => {
        const count = 'import sys; print([len(a) for a in sys.argv[1:] if set(a) == {"a"}])'
        const lengths = [10_000, 131_071]
        const seen = await askPython<number[]>(sandbox, count, { args: lengths.map((length) => 'a'.repeat(length)) })
        ensureSame(seen, lengths, 'the lengths of the arguments')
        const many = await askPython<number>(sandbox, 'import sys; print(len(sys.argv) - 1)', { args: new Array<string>(1000).fill('x') })
        ensureSame(many, 1000, 'the number of arguments')
        return '10,000 and 131,071 bytes; 1,000 arguments'
      }),
  },
  {
    id: 'programs/shell-string',
    name: 'a string is given to the shell of the cell',
    run: (subject) =>
      withSandbox(subject, async (sandbox) => {
        ensureSame(ensureExited(await sandbox.run('x=4; echo $((x + 3)) | tr 7 s; exit 5'), 5), 's\n', 'stdout')
        return 'variables, arithmetic, a pipe and an exit code'
      }),
  },
  {
    id: 'programs/env-exact',
    name: 'a program sees the variables it was given, the few fixed ones, and no other',
    run: (subject) =>
      withSandbox(
        subject,
        async (sandbox) => {
          const given = { GIVEN: 'a=b "c" $d', EMPTY: '', LINES: 'one\ntwo', 'odd name-1.x': 'ü', LONG: 'v'.repeat(20_000) }
          const seen = parseEnvironment((await sandbox.run(['/usr/bin/env', '-0'], { env: given })).stdout)
          const own = { FROM_SPEC: 'yes' }
          const rest = Object.keys(seen).filter((name) => !(name in given) && !(name in own))
          ensureSame(
            rest.filter((name) => !fixedVariables.has(name)),
            [],
            'variables nobody gave',
          )
          const expected = { ...given, ...own }
          ensureSame(Object.fromEntries(Object.entries(seen).filter(([name]) => name in expected)), expected, 'the given variables')
          ensureSame(
            seen.PATH?.split(':').every((part) => part.startsWith('/')),
            true,
            'every part of PATH an absolute path',
          )
          return `${Object.keys(given).length} given, fixed: ${rest.sort().join(' ')}`
        },
        { env: { FROM_SPEC: 'yes' } },
      ),
  },
  {
    id: 'programs/cwd',
    name: 'a program starts in the folder it was given, and in the workspace otherwise, which it may write to',
    run: (subject) =>
      withSandbox(subject, async (sandbox) => {
        ensureSame(ensureExited(await sandbox.run(['pwd', '-P'], { cwd: '/usr' })), '/usr\n', 'pwd')
        const workdir = ensureExited(await sandbox.run(['sh', '-c', 'echo kept >file && pwd'])).trim()
        ensureSame(ensureExited(await sandbox.run(['cat', `${workdir}/file`])), 'kept\n', 'what the next run finds there')
        return `/usr, and ${subject.probe.isolates ? workdir : 'a folder of its own'}`
      }),
  },
  {
    id: 'programs/not-found',
    name: 'a program that is not there is not-started with 127',
    run: (subject) =>
      withSandbox(subject, async (sandbox) => {
        const byName = ensureNotStarted((await sandbox.run(['no-such-program-7'])).outcome, 127)
        ensureNotStarted((await sandbox.run(['/usr/bin/no-such-program-7'])).outcome, 127)
        ensureNotStarted((await sandbox.run(['no-such-folder-7/program'])).outcome, 127)
        ensureExited(await sandbox.run(['true']))
        return byName
      }),
  },
  {
    id: 'programs/not-executable',
    name: 'a file without the right, a folder and a file of no known format are not-started with 126',
    run: (subject) =>
      withSandbox(subject, async (sandbox) => {
        ensureExited(
          await sandbox.run(['sh', '-c', 'echo text >plain; echo text >bare; chmod 755 bare; printf "#!/no/interpreter\\n" >orphan; chmod 755 orphan']),
        )
        const reasons = []
        for (const name of ['./plain', './bare', '/usr']) reasons.push(ensureNotStarted((await sandbox.run([name])).outcome, 126))
        ensureNotStarted((await sandbox.run(['./orphan'])).outcome, 127)
        return reasons.join('; ')
      }),
  },
]
