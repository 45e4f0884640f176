import { spawn } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { describe, expect, it } from 'vitest'

interface Result {
  readonly code: number
  readonly output: string
  readonly timedOut: boolean
}

const commandModule = new URL('../../scripts/command.mjs', import.meta.url).href
const { runCommand } = (await import(commandModule)) as {
  runCommand: (argv: readonly string[], options?: { timeoutMs?: number; keptBytes?: number }) => Promise<Result>
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}

async function gone(pid: number): Promise<boolean> {
  for (let attempt = 0; attempt < 1000 && isAlive(pid); attempt++) await new Promise((resolve) => setTimeout(resolve, 50))
  return !isAlive(pid)
}

describe('a command of a set-up or a suite', () => {
  it('tells its exit code and the end of what it printed', async () => {
    expect(await runCommand(['sh', '-c', 'echo one; echo two >&2; exit 7'])).toMatchObject({ code: 7, timedOut: false })
    expect((await runCommand(['sh', '-c', 'yes | head -c 100000; echo end'], { keptBytes: 10 })).output).toBe('y\ny\ny\nend\n')
  })

  it('that is not there is 127', async () => {
    expect(await runCommand(['/nowhere/program'])).toMatchObject({ code: 127 })
  })

  it('is stopped with its children when its time is over', async () => {
    const result = await runCommand(['sh', '-c', 'sleep 60 & echo $!; wait'], { timeoutMs: 5000 })
    expect(result.timedOut).toBe(true)
    expect(await gone(Number(result.output))).toBe(true)
  })

  it('is stopped with its children when we are interrupted', async () => {
    const program = `import { runCommand } from ${JSON.stringify(commandModule)}
      await runCommand(['sh', '-c', 'sleep 60 & echo $! > "$PID_FILE"; wait'], {}).catch((error) => console.log(error.constructor.name))`
    const folder = mkdtempSync(join(tmpdir(), 'glovebox-command-'))
    const file = join(folder, 'pid')
    const child = spawn(process.execPath, ['--input-type=module', '-e', program], {
      env: { ...process.env, PID_FILE: file },
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    let pid = Number.NaN
    while (!(pid > 0)) {
      await new Promise((resolve) => setTimeout(resolve, 50))
      pid = existsSync(file) ? Number(readFileSync(file, 'utf8')) : Number.NaN
    }
    child.kill('SIGINT')
    const said = await text(child.stdout)
    rmSync(folder, { recursive: true })
    expect(said).toBe('Interrupted\n')
    expect(await gone(pid)).toBe(true)
  })
})
