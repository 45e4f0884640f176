import { spawn } from 'node:child_process'
import { closeSync, openSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { cliPath, fake } from './cli.js'
import { testUnless } from '../unless.js'

interface Ended {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

/** A run whose stdin is `path` itself, as a shell's `<` makes it. */
function runFrom(path: string, command: readonly string[], mode = 'r'): Promise<Ended> {
  const stdin = openSync(path, mode)
  const child = spawn(process.execPath, [cliPath, 'run', '-q', ...fake, '--timeout', '20s', '--', ...command], { stdio: [stdin, 'pipe', 'pipe'] })
  closeSync(stdin)
  const said = { stdout: '', stderr: '' }
  child.stdout?.on('data', (chunk: Buffer) => (said.stdout += chunk.toString()))
  child.stderr?.on('data', (chunk: Buffer) => (said.stderr += chunk.toString()))
  return new Promise((resolve) => child.once('close', (code) => resolve({ code, ...said })))
}

/** The kernel's log: a reader that has read all of it waits for more. */
const silentDevice = '/dev/kmsg'

function canRead(path: string): boolean {
  try {
    closeSync(openSync(path, 'r'))
    return true
  } catch {
    return false
  }
}

describe('stdin', () => {
  test.each(['/dev/zero', '/dev/urandom'])('that is %s is forwarded for as long as it is read', async (path) => {
    expect(await runFrom(path, ['sh', '-c', 'head -c 300000 | wc -c'])).toEqual({ code: 0, stdout: '300000\n', stderr: '' })
  })

  test('that is an endless device does not keep a run that reads nothing', async () => {
    expect(await runFrom('/dev/zero', ['true'])).toEqual({ code: 0, stdout: '', stderr: '' })
  })

  test('that is /dev/null is an empty input', async () => {
    expect(await runFrom('/dev/null', ['wc', '-c'])).toEqual({ code: 0, stdout: '0\n', stderr: '' })
  })

  test('that is a file is forwarded to its end', async () => {
    expect(await runFrom('/proc/sys/kernel/ostype', ['cat'])).toEqual({ code: 0, stdout: 'Linux\n', stderr: '' })
  })

  test('that is a folder is refused before anything starts', async () => {
    expect(await runFrom('/usr', ['echo', 'started'])).toEqual({
      code: 125,
      stdout: '',
      stderr: 'glovebox: stdin: cannot be read: it is a folder\nhint: glovebox run --help\n',
    })
  })

  test('that breaks while it is read ends the run with 125 and the reason', async () => {
    const { code, stdout, stderr } = await runFrom('/proc/self/mem', ['sh', '-c', 'cat; sleep 60'])
    expect({ code, stdout }).toEqual({ code: 125, stdout: '' })
    expect(stderr).toMatch(/^glovebox: stdin: cannot be read: EIO.*\nhint: .*\n$/)
  })

  test('that can only be written to, as nohup leaves it, is no input', async () => {
    expect(await runFrom('/dev/null', ['wc', '-c'], 'w')).toEqual({ code: 0, stdout: '0\n', stderr: '' })
  })

  testUnless(!canRead(silentDevice) && `${silentDevice} may not be read by this user`)(
    'that is a device with nothing more to say does not keep a run',
    async () => {
      expect(await runFrom(silentDevice, ['true'])).toEqual({ code: 0, stdout: '', stderr: '' })
    },
  )
})
