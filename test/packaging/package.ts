import { spawnSync } from 'node:child_process'
import { chmodSync, chownSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

export const root = fileURLToPath(new URL('../..', import.meta.url))
const ordinaryId = 65_534

export interface Done {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

export interface Elsewhere {
  /** A folder of an ordinary user, with nothing of this tree in it. */
  readonly folder: string
  /** Runs a program there as that user: as ourselves, unless we are root. */
  run(argv: readonly string[], input?: string): Done
  remove(): void
}

export function run(argv: readonly string[], options: { readonly cwd: string; readonly input?: string; readonly env?: NodeJS.ProcessEnv }): Done {
  const [file = '', ...args] = argv
  const { status, stdout, stderr, error } = spawnSync(file, args, { encoding: 'utf8', maxBuffer: 1 << 26, ...options })
  return { code: status, stdout, stderr: error === undefined ? stderr : `${stderr}${error.message}` }
}

/** Packs this tree as `npm pack` does and returns the tarball's path. */
export function pack(target: string): string {
  const packed = run(['npm', 'pack', '--silent', '--pack-destination', target], { cwd: root })
  if (packed.code !== 0) throw new Error(`npm pack: ${packed.stderr}${packed.stdout}`)
  const [tarball] = readdirSync(target).filter((name) => name.endsWith('.tgz'))
  if (tarball === undefined) throw new Error('npm pack left no tarball')
  return join(target, tarball)
}

export function makeElsewhere(): Elsewhere {
  const folder = mkdtempSync(join(tmpdir(), 'glovebox-elsewhere-'))
  const isRoot = process.getuid?.() === 0
  const home = join(folder, 'home')
  mkdirSync(home)
  chmodSync(folder, 0o755)
  writeFileSync(join(folder, 'package.json'), '{ "private": true }\n')
  if (isRoot) for (const path of [folder, home, join(folder, 'package.json')]) chownSync(path, ordinaryId, ordinaryId)
  const account = isRoot ? ['setpriv', '--reuid', String(ordinaryId), '--regid', String(ordinaryId), '--clear-groups', '--'] : []
  // What `npm test` tells its children is about this tree and this account; the way to the network stays.
  const inherited = Object.entries(process.env).filter(([name]) => !/^(npm_|XDG_|INIT_CWD$)/.test(name))
  const env = { ...Object.fromEntries(inherited), HOME: home, TMPDIR: folder }
  return {
    folder,
    run: (argv, input = '') => run([...account, ...argv], { cwd: folder, input, env }),
    remove: () => rmSync(folder, { recursive: true, force: true }),
  }
}
