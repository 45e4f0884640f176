// What code can do to the shell that it runs in: the next execution works, whatever it was.
import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { Kernel } from '../kernel.js'

let kernel: Kernel
beforeAll(async () => {
  kernel = await Kernel.start('shell')
  await kernel.execute('kept=41')
})
afterAll(async () => {
  await kernel[Symbol.asyncDispose]()
})

const works = async (of: Kernel = kernel) => {
  const { status, stdout, stderr } = await of.execute('echo "$((kept + 1))"; builtin printf "%s\\n" err >&2')
  expect({ status, stdout, stderr }).toEqual({ status: 'ok', stdout: '42\n', stderr: 'err\n' })
}

test.each([
  [
    'redefines builtins',
    'read() { :; }; printf() { echo evil; }; eval() { :; }; builtin() { echo evil; }; unset() { :; }; local() { :; }; declare() { :; }; trap() { :; }; exec() { :; }; set() { :; }; kill() { :; }; return() { :; }',
  ],
  ['puts them back', 'POSIXLY_CORRECT=1; unset -f read printf eval builtin unset local declare trap exec set kill return; unset POSIXLY_CORRECT'],
  ['sets IFS', 'IFS=0123456789abcdef'],
  ['sets it back', "IFS=$' \\t\\n'"],
  ['sets options', 'set -f; shopt -s nullglob failglob nocasematch nocaseglob dotglob; set -o noclobber'],
  ['unsets them', 'set +f; shopt -u failglob nocasematch nullglob nocaseglob; set +o noclobber'],
  ['is in posix mode', 'set -o posix'],
  ['is out of it', 'set +o posix'],
  ['closes descriptors', 'for n in 0 1 2 3 4 5 6 7 8 9; do command eval "exec $n<&- $n>&-"; done'],
  ['closes ours', 'exec 200<&- 201>&- 202>&- 204>&-'],
  ['has no PATH', 'PATH=; unset PATH'],
  ['redefines the kernel', '__glovebox_next() { exit 1; }; __glovebox_settle() { :; }; unset -f __glovebox_report'],
  ['changes its prompt', 'PROMPT_COMMAND=; PS1="$ "; IGNOREEOF=0'],
  ['disables builtins', 'enable -n read printf local'],
  ['enables them', 'enable read printf local'],
  ['has traps', 'trap "echo err" ERR; trap "echo exit" EXIT; trap "" INT; trap "echo return" RETURN'],
  ['has none', 'trap - ERR EXIT INT RETURN'],
  ['prints our marks', 'echo -e "\\x1e00000000000000000000000000000000:1\\x1edone - 2\\n{}"'],
  ['leaves children', '(sleep 0.1; echo late) >/dev/null & sleep 0.1 & disown'],
  ['is in a folder that is gone', 'PATH=/usr/bin:/bin; d=$(mktemp -d); cd "$d"; rmdir "$d"'],
  ['sets the locale', 'LC_ALL=C; LANG=nonsense'],
  ['is not even text', '\u0001\u0002$\u007f`'],
])('code that %s', async (_, source) => {
  await kernel.execute(source)
  await works()
})

test('an interrupt ends whatever runs, and keeps the shell', async () => {
  await using own = await Kernel.start('shell')
  await own.execute('kept=41')
  const sources = [
    'while :; do :; done',
    'sleep 1000; echo no',
    'f() { while :; do :; done; }; f',
    'sleep 1000 | cat',
    '(while :; do :; done)',
    'x=$(sleep 1000)',
    'set -e; sleep 1000',
  ]
  for (const source of sources) {
    let isSent = false
    const onOutput = (printed: string) => {
      if (isSent || !printed.includes('begun\n')) return
      isSent = true
      setTimeout(() => own.interrupt(), 30)
    }
    const { error, stdout } = await own.execute(`echo begun; ${source}`, { onOutput })
    expect([source, error?.name, stdout]).toEqual([source, 'KeyboardInterrupt', 'begun\n'])
    await works(own)
  }
}, 60_000)

test('an interrupt between executions does nothing', async () => {
  await using own = await Kernel.start('shell')
  await own.execute('kept=41')
  for (let times = 0; times < 5; times++) {
    own.interrupt()
    await works(own)
  }
})

test('variables of the environment are there for one execution, and seen by children', async () => {
  await using own = await Kernel.start('shell')
  await own.execute('export STAYS=old; plain=1')
  const env = { STAYS: 'new', MINE: "it's $x", plain: '2' }
  expect((await own.execute('echo "$STAYS $MINE $plain"; bash -c \'echo "$MINE $plain"\'', { env })).stdout).toBe("new it's $x 2\nit's $x 2\n")
  expect((await own.execute('echo "$STAYS [$MINE] $plain"; bash -c \'echo "$STAYS [$plain]"\'')).stdout).toBe('old [] 1\nold []\n')
})

test('a shell that ends in spite of everything says how', async () => {
  await using own = await Kernel.start('shell')
  expect(await own.execute('builtin exit 9')).toMatchObject({ status: 'exit', code: 9 })
  expect(await own.ended).toBe(9)
})

test('children see nothing of the kernel', async () => {
  await using own = await Kernel.start('shell')
  const look =
    'for n in 3 4 10 11 12 13 200 201 202 204; do [[ -e /proc/self/fd/$n ]] && echo "fd $n"; done; env | grep -e PROMPT_COMMAND -e glovebox; echo end'
  expect((await own.execute(`bash -c '${look}'`)).stdout).toBe('end\n')
})

test('large and random source is answered', async () => {
  await using own = await Kernel.start('shell')
  expect((await own.execute(`x='${'y'.repeat(2 ** 20)}'; echo \${#x}`)).stdout).toBe('1048576\n')
  const words = [
    'if ',
    'then ',
    'fi',
    'for i in ',
    'do ',
    'done',
    '{ ',
    '}',
    '(',
    ')',
    '$(',
    '`',
    '"',
    "'",
    '\n',
    ';',
    '&',
    '|',
    '<<E',
    '$x',
    '${',
    'x=1',
    ':',
    'case ',
    'esac',
    '#',
    '!',
    '[[ ',
    ' ]]',
    '\\',
    'é',
  ]
  const sources = fc.sample(
    fc.array(fc.constantFrom(...words), { maxLength: 20 }).map((parts) => parts.join('')),
    100,
  )
  for (const source of sources) expect([source, (await own.execute(source)).status]).toEqual([source, expect.stringMatching(/^(ok|error|exit)$/)])
  expect((await own.execute('echo end')).stdout).toBe('end\n')
}, 120_000)
