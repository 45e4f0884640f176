import { spawnSync } from 'node:child_process'
import { chmodSync, copyFileSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Peer, WARDEN } from './frames.js'

/** A range that no engine of this machine hands out soon, nor any test sweeps. */
const FIRST_ID = 0x78000000 + 65536 * 1900
const WARDEN_ID = 65532

export const hasBwrap = spawnSync('bwrap', ['--unshare-all', '--unshare-user', '--ro-bind', '/', '/', 'true']).status === 0
export const isRoot = process.getuid?.() === 0

const walls = (warden: string): string[] => [
  ...['--unshare-all', '--unshare-user', '--as-pid-1', '--die-with-parent', '--cap-drop', 'ALL'],
  ...['--ro-bind', '/usr', '/usr', '--symlink', 'usr/bin', '/bin', '--symlink', 'usr/lib', '/lib', '--symlink', 'usr/lib64', '/lib64'],
  ...['--proc', '/proc', '--tmpfs', '/dev', '--dev-bind', '/dev/null', '/dev/null', '--dev-bind', '/dev/zero', '/dev/zero'],
  ...['--symlink', '/proc/self/fd/1', '/dev/stdout', '--symlink', '/proc/self/fd/0', '/dev/stdin'],
  ...['--dir', '/dev/pts', '--dir', '/workspace', '--dir', '/tmp', '--ro-bind', warden, '/.warden'],
]

const inside = (user: number): string[] => [
  ...['/.warden', '--disk', '1048576', '64', '--writable', '/workspace', `${user}`, `${user}`, '0750', '--writable', '/tmp', `${user}`, `${user}`, '1777'],
  ...['--pts', '--mask', '/proc/timer_list', '--mask', '/proc/acpi', '--mask', '/nowhere'],
  ...['--readonly', '/proc/sys', '--readonly', '/dev', '--readonly', '/', '--detach', '/.warden'],
]

const added = (names: readonly string[]): string[] => names.flatMap((name) => ['--cap-add', `CAP_${name}`])

/** A cell of one id, as an ordinary user makes it. As root the ordinary user is an invented one. `by`: what runs the command that makes it. */
export function singleIdCell(more: readonly string[] = [], capabilities: readonly string[] = [], by: readonly string[] = []): Peer {
  const user = isRoot ? { uid: 54321, gid: 54321 } : {}
  const given = added(['SYS_ADMIN', 'SETPCAP', ...capabilities])
  return new Peer([...by, 'bwrap', '--uid', '1000', '--gid', '1000', ...walls(WARDEN), ...given, ...inside(1000), ...more], user)
}

export const manyIdCapabilities = ['SYS_ADMIN', 'SETUID', 'SETGID', 'KILL', 'SETPCAP', 'CHOWN', 'DAC_OVERRIDE', 'FOWNER']

/** A cell with ids of its own, mapped from outside, as root makes it. */
export class ManyIdCell implements AsyncDisposable {
  readonly #folder = mkdtempSync(join(tmpdir(), 'warden-cell-'))
  readonly peer: Peer

  private constructor(capabilities: readonly string[], more: readonly string[]) {
    chmodSync(this.#folder, 0o755)
    const warden = join(this.#folder, 'warden')
    copyFileSync(WARDEN, warden)
    chmodSync(warden, 0o755)
    const fds = ['--info-fd', '3', '--userns-block-fd', '4']
    const id = FIRST_ID + WARDEN_ID
    this.peer = new Peer(['bwrap', ...fds, ...walls(warden), ...added(capabilities), ...inside(1000), ...more], { uid: id, gid: id, extra: ['pipe', 'pipe'] })
  }

  static async open(capabilities: readonly string[] = manyIdCapabilities, more: readonly string[] = []): Promise<ManyIdCell> {
    const cell = new ManyIdCell(capabilities, more)
    const { stdio } = cell.peer.child
    const info = await new Promise<string>((resolve) => stdio[3]?.once('data', (bytes: Buffer) => resolve(bytes.toString())))
    const pid = Number(/"child-pid": (\d+)/.exec(info)?.[1])
    for (const map of ['uid_map', 'gid_map']) writeFileSync(`/proc/${pid}/${map}`, `0 ${FIRST_ID} 65536`)
    ;(stdio[4] as NodeJS.WritableStream).end('1')
    return cell
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.peer[Symbol.asyncDispose]()
    rmSync(this.#folder, { recursive: true })
  }
}
