import { spawn, spawnSync } from 'node:child_process'

// On an arm64 machine the programs run as they are; elsewhere through QEMU's user mode.
export const emulator: readonly string[] = process.arch === 'arm64' ? [] : ['qemu-aarch64-static']

/** Why arm64 programs cannot be run here, if they cannot. */
export function emulationObstacle(): string | undefined {
  const [program] = emulator
  if (program === undefined || spawnSync(program, ['--version']).status === 0) return undefined
  return `${program} is not here (apt-get install qemu-user-static)`
}

/** The first bytes a warden sends, after which its input is ended. */
export function greetingOf(warden: string): Promise<Buffer> {
  const [file = '', ...args] = [...emulator, warden, '--subreaper']
  const child = spawn(file, args, { stdio: ['pipe', 'pipe', 'pipe'] })
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
    child.on('close', () => (chunks.length > 0 ? resolve(Buffer.concat(chunks)) : reject(new Error(`no frame: ${diagnosis}`))))
  })
}
