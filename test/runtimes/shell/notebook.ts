/** Executions one after the other in one shell: each with what it must come to. Over pipes and in a cell they are the same. */
import { expect } from 'vitest'
import type { Executed } from '../kernel.js'

export interface Step {
  readonly source: string
  readonly stdout?: string
  readonly stderr?: string | RegExp
  readonly code?: number
  readonly ending?: 'exit'
  readonly line?: number
}

/** `folder`: the one that it begins in. */
export const stepsIn = (folder: string): readonly Step[] => [
  { source: 'echo hello; echo oops >&2', stdout: 'hello\n', stderr: 'oops\n' },
  { source: 'x=5; export Y=six; declare -a list=(a b); declare -A map=([k]=v); f() { echo "f:$1:$x"; }' },
  { source: 'f 1; echo "$Y ${list[1]} ${map[k]}"; bash -c \'echo $Y\'', stdout: 'f:1:5\nsix b v\nsix\n' },
  { source: 'pwd', stdout: `${folder}\n` },
  { source: 'mkdir -p sub && cd sub' },
  { source: 'pwd; cd ..', stdout: `${folder}/sub\n` },
  { source: 'true\nfalse', code: 1, line: 2 },
  { source: 'echo "was $?"', stdout: 'was 1\n' },
  { source: 'ls /does/not/exist 2>/dev/null', code: 2, line: 1 },
  { source: 'exit 3', code: 3, ending: 'exit' },
  { source: 'deep() { exit 4; echo no; }; outer() { deep; echo no; }; outer; echo no', code: 4, ending: 'exit' },
  { source: '(exit 5); echo "sub $?"; echo "$(exit 6; echo no)"', stdout: 'sub 5\n\n' },
  { source: 'trap "echo bye" EXIT; exit', code: 0, ending: 'exit', stdout: 'bye\n' },
  { source: 'echo "alive $x"', stdout: 'alive 5\n' },
  { source: 'set -e; echo a; false; echo b', stdout: 'a\n', code: 1, line: 1 },
  { source: 'inner() { false; echo no; }\n\ninner\necho no', code: 1, line: 1 },
  { source: 'if false; then :; fi; false || echo handled; set +e', stdout: 'handled\n' },
  { source: 'set -u\necho "$nothing"\necho no', code: 1, stderr: /nothing: unbound variable/ },
  { source: 'set +u; readonly fixed=1; echo "$fixed"', stdout: '1\n' },
  { source: 'fixed=2; echo no', code: 1, stderr: /readonly variable/ },
  { source: 'echo "${missing:?is needed}"\necho no', code: 1, stderr: /missing: is needed/ },
  { source: 'echo "never closed', code: 2, stderr: /unexpected EOF while looking for matching `"'/ },
  { source: 'if true; then\n  echo x', code: 2, stderr: /line 3: syntax error: unexpected end of file/ },
  { source: "cat <<END\nvalue $x\nEND\ncat <<'END'\nraw $x\nEND", stdout: 'value 5\nraw $x\n' },
  { source: 'read -r line; echo "$? [$line]"', stdout: '1 []\n' },
  { source: `exec >${folder}/out; echo written` },
  { source: `cat ${folder}/out`, stdout: 'written\n' },
  { source: 'alias hi="echo aliased"' },
  { source: 'hi; alias ho="echo at once"\nho', stdout: 'aliased\nat once\n' },
  { source: 'shopt -s extglob nullglob; set -o pipefail' },
  { source: 'false | true; echo $?; echo /none*; shopt -u nullglob', stdout: '1\n\n' },
  { source: 'sleep 1000 & echo started', stdout: 'started\n' },
  { source: 'kill %1; wait %1; echo "ended $?"', stdout: 'ended 143\n' },
  { source: 'trap "echo usr" USR1; kill -USR1 $$; echo after', stdout: 'usr\nafter\n' },
  { source: 'set -- one two; echo $#', stdout: '2\n' },
  { source: 'echo "$2"', stdout: 'two\n' },
  { source: 'break', stderr: /^$|only meaningful/ },
  { source: 'continue; echo no' },
  { source: 'for i in 1 2 3; do [[ $i == 2 ]] && continue; echo $i; done', stdout: '1\n3\n' },
  { source: 'return 3', code: 2, stderr: /can only `return'/ },
  { source: '' },
  { source: '# nothing but a comment' },
  { source: 'printf "a\\x1eb"', stdout: 'a\x1eb' },
  { source: 'diff <(echo a) <(echo a) && echo "${BASH_REMATCH[0]:-none}"', stdout: 'none\n' },
  { source: 'unset x; echo "[${x-unset}]"', stdout: '[unset]\n' },
]

/** Holds what an execution came to against what it must. */
export function check(
  { stdout = '', stderr = '', code = 0, ending, line }: Step,
  seen: Pick<Executed, 'status' | 'code' | 'stdout' | 'stderr' | 'error'>,
): void {
  expect({ status: seen.status, code: seen.code, stdout: seen.stdout, stderr: seen.stderr }).toEqual({
    status: ending ?? (code === 0 ? 'ok' : 'error'),
    code,
    stdout,
    stderr: typeof stderr === 'string' ? stderr : expect.stringMatching(stderr),
  })
  expect(seen.error?.name).toBe(seen.status === 'error' ? 'ExitStatus' : undefined)
  if (line !== undefined) expect(seen.error).toMatchObject({ line, value: `exit status ${code}` })
}
