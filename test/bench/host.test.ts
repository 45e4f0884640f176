import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { expect, test } from 'vitest'
import { descendantsOf, pssBytes } from '../../src/bench/host-processes.js'
import { newTraces, traceHost } from '../../src/bench/host-traces.js'

test('a process, what it started and their memory are seen while they live, and are no more', async () => {
  const before = traceHost()
  const child = spawn('/bin/sh', ['-c', 'sleep 60 & echo; wait'], { stdio: ['ignore', 'pipe', 'ignore'], detached: true })
  const exited = once(child, 'exit')
  await once(child.stdout, 'data')
  const pid = child.pid ?? 0
  try {
    const below = descendantsOf(pid)
    expect(below).toHaveLength(1)
    expect(newTraces(before, traceHost()).processes).toEqual(expect.arrayContaining([String(pid), String(below[0])]))
    expect(pssBytes([pid, ...below])).toBeGreaterThan(pssBytes([pid]))
  } finally {
    process.kill(-pid, 'SIGKILL')
    await exited
  }
  // Mounts of the host are everyone's, and other tests make some.
  expect({ ...newTraces(before, traceHost()), mounts: [] }).toEqual({ processes: [], mounts: [], cgroups: [], ids: [], files: [] })
}, 30_000)

test('memory of a process that ended is none', async () => {
  const child = spawn('/bin/true')
  await once(child, 'exit')
  expect(pssBytes([child.pid ?? 0])).toBe(0)
})
