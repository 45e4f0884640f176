import { spawn, spawnSync } from 'node:child_process'

// On an arm64 machine the programs run as they are; elsewhere through QEMU's user mode.
export const emulator: readonly string[] = process.arch === 'arm64' ? [] : ['qemu-aarch64-static']

/** Why arm64 programs cannot be run here, if they cannot. */
export function emulationObstacle(): string | undefined {
  const [program] = emulator
  if (program === undefined || spawnSync(program, ['--version']).status === 0) return undefined
  return `${program} is not here (apt-get install qemu-user-static)`
}

export interface Greeting {
  readonly frame: Buffer
  readonly diagnosis: string
}

/** What a warden sends first, after which its input is ended, and its line of diagnosis if it died instead. */
export function greetingOf(warden: string): Promise<Greeting> {
  const [file, ...args] = [...emulator, warden, '--subreaper']
  const child = spawn(file ?? warden, args, { stdio: ['pipe', 'pipe', 'pipe'] })
  const chunks: Buffer[] = []
  let diagnosis = ''
  child.stderr.on('data', (chunk: Buffer) => {
    diagnosis += chunk.toString()
  })
  child.stdout.on('data', (chunk: Buffer) => {
    chunks.push(chunk)
    child.stdin.end()
  })
  return new Promise((resolve, reject) => {
    child.on('error', reject)
    child.on('close', () => resolve({ frame: Buffer.concat(chunks), diagnosis: diagnosis.trim() }))
  })
}
