import { describe, expect, test } from 'vitest'
import { testUnless } from '../unless.js'
import { isRoot } from '../warden/cells.js'
import { collect } from './collect.js'
import { openLined } from './lined.js'

const python = '/usr/bin/python3'
const zygote = { language: 'python', imports: ['json', 'random'] } as const

describe('a run in a liner', () => {
  test('is looked at, runs as the user, and leaves nothing for the next', async () => {
    await using lined = await openLined()
    const first = await lined.run('id -u; echo x >/workspace/x; echo y >/tmp/y; (setsid sleep 100 >/dev/null 2>&1 &) ; ls /workspace')
    expect([first.out, first.err, first.code]).toEqual(['1000\nx\n', '', 0])
    const second = await lined.run('ls -A /workspace /tmp /home/user /dev/shm; ls /proc | grep -c "^[0-9]"')
    expect(second.out).toBe('/dev/shm:\n\n/home/user:\n\n/tmp:\n\n/workspace:\n4\n')
    const receipt = await lined.sandbox.receipt()
    const placements = receipt.controls.filter(({ control, subject }) => control === 'placement' && subject.startsWith('run'))
    expect(placements.map(({ enforced, verdict }) => [enforced, verdict])).toEqual(
      [1, 2].map(() => [{ namespaces: 'liner', cgroup: expect.any(String) as string }, 'proven']),
    )
  })

  test('a fork of the zygote has nothing of what the zygote was told for an earlier run in its memory', async () => {
    await using lined = await openLined()
    await lined.sandbox.ensureZygote(zygote)
    const seek = `import ctypes, sys
mark, found = sys.argv[1].encode(), False
for line in open('/proc/self/maps'):
  place, mode, *_, last = line.split()
  if mode[0] == 'r' and not last.startswith('[v'):
    start, end = (int(each, 16) for each in place.split('-'))
    parts = ctypes.string_at(start, end - start).split(mark)
    found = found or any(part[-200:] == b'x' * 200 for part in parts[:-1])
print(found)`
    for (const length of [9000, 90_000]) {
      const told = { env: { A: `${'x'.repeat(length)}of-one-run` } }
      expect(await lined.run([python, '-c', seek, 'of-one-run'], told)).toMatchObject({ out: 'True\n', err: '' })
      expect(await lined.run([python, '-c', seek, 'of-one-run'])).toMatchObject({ out: 'False\n', err: '' })
    }
  })

  testUnless(isRoot ? false : 'only root limits memory here')('that uses up all memory, by files even, ends, and not the zygote', async () => {
    await using lined = await openLined({ limits: { memory: '64MiB', disk: '400MiB' } })
    await lined.sandbox.ensureZygote(zygote)
    const fill = "with open('/tmp/x', 'wb', buffering=0) as file:\n  while True: file.write(bytes(65536))"
    expect((await lined.run([python, '-c', fill])).outcome).toMatchObject({ kind: 'out-of-memory' })
    expect((await lined.run([python, '-c', 'import sys; print("json" in sys.modules)'])).out).toBe('True\n')
  })

  test('a program of the cell itself runs beside it', async () => {
    await using lined = await openLined()
    const process = await lined.sandbox.start({ command: 'echo plain' }, undefined)
    await expect(collect(process)).resolves.toMatchObject({ stdout: 'plain\n', stderr: '' })
  })

  test('is forked from a zygote, and is as a python3 that was just started', async () => {
    await using lined = await openLined()
    await lined.sandbox.ensureZygote(zygote)
    const code =
      'import sys, os; print(sys.argv, __name__, os.getcwd(), os.getuid(), os.environ["A"], os.environ.get("OMP_NUM_THREADS"), "json" in sys.modules, sys.path[0] == "")'
    const said = await lined.run([python, '-c', code, 'a', 'b'], { env: { A: 'é' } })
    expect([said.err, said.out, said.code]).toEqual(['', Buffer.from("['-c', 'a', 'b'] __main__ /workspace 1000 é None True True\n").toString('latin1'), 0])
  })
})
