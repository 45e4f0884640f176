/** Programs in a sandbox that is lived in: how they end, what they print, who reads it and who leaves. Each resolves to the end that it found. */
import { setTimeout as sleep } from 'node:timers/promises'
import { expect } from './accounts.mjs'

const decoder = new TextDecoder()

async function exits({ sandbox, random }) {
  const code = random.below(256)
  const word = `w${random.below(1e9)}`
  const { outcome, stdout } = await sandbox.run(['sh', '-c', `echo ${word}; exit ${code}`])
  expect(outcome.kind === 'exited' && outcome.code === code && stdout === `${word}\n`, `exits with ${code} after '${word}'`, { outcome, stdout })
  return 'exited'
}

async function echoes({ sandbox, random }) {
  const bytes = random.bytes(random.between(1, 200_000))
  const { outcome, stdoutBytes } = await sandbox.run(['cat'], { stdin: bytes })
  expect(outcome.kind === 'exited' && Buffer.compare(stdoutBytes, bytes) === 0, 'what is written comes back', { outcome, length: stdoutBytes.length })
  return 'exited'
}

async function takesTooLong({ sandbox, random }) {
  const { outcome } = await sandbox.run(random.pick([['sleep', '60'], 'while :; do :; done', 'trap "" TERM HUP INT; sleep 60 & wait']), {
    timeout: random.between(20, 300),
  })
  expect(outcome.kind === 'timed-out' && outcome.by === 'wall', 'is killed for its time', outcome)
  return 'timed-out'
}

async function usesTooMuchProcessor({ sandbox }) {
  const { outcome } = await sandbox.run('while :; do :; done', { limits: { cpuTime: 100 } })
  expect(outcome.kind === 'timed-out' && outcome.by === 'cpu', 'is killed for its processor time', outcome)
  return 'timed-out by cpu'
}

async function takesTooMuchMemory({ sandbox }) {
  const { outcome } = await sandbox.run(['python3', '-c', "x = b'x' * (256 << 20)"], { limits: { memory: '24m' } })
  expect(outcome.kind === 'out-of-memory', 'is killed for want of memory', outcome)
  return 'out-of-memory'
}

async function floods({ sandbox, random }) {
  const limit = random.between(1, 300_000)
  if (random.chance(0.5)) {
    const { outcome, stdoutBytes } = await sandbox.run(['yes'], { output: limit })
    expect(outcome.kind === 'output-limit' && stdoutBytes.length === limit, `is killed at ${limit} bytes`, { outcome, length: stdoutBytes.length })
    return 'output-limit'
  }
  const { outcome, truncated, stdoutBytes } = await sandbox.run(['head', '-c', '400000', '/dev/zero'], { output: limit, onOutputLimit: 'truncate' })
  expect(outcome.kind === 'exited' && truncated && stdoutBytes.length === limit, `is cut at ${limit} bytes`, { outcome, truncated, length: stdoutBytes.length })
  return 'truncated'
}

async function readerLeaves({ sandbox, random }) {
  let left = random.between(1, 20)
  for await (const event of sandbox.run('yes')) {
    expect(event.type === 'stdout', 'yes prints', event.type)
    left -= 1
    if (left === 0) break
  }
  return 'left'
}

async function isAborted({ sandbox, random }) {
  const reason = new Error('called off')
  const stop = new AbortController()
  const timer = setTimeout(() => stop.abort(reason), random.below(120))
  try {
    await sandbox.run(random.pick(['sleep 60', 'yes >/dev/null']), { signal: stop.signal })
  } catch (error) {
    expect(error === reason, 'what is called off rejects with the reason', error)
    return 'aborted'
  } finally {
    clearTimeout(timer)
  }
  return expect(false, 'what is called off does not resolve')
}

async function doesNotStart({ sandbox, random }) {
  const [command, code] = random.pick([
    [['/there/is/none'], 127],
    [['/etc/passwd'], 126],
  ])
  const { outcome } = await sandbox.run(command)
  expect(outcome.kind === 'not-started' && outcome.code === code, `does not start, ${code}`, outcome)
  return 'not-started'
}

async function dies({ sandbox, random }) {
  const signal = random.pick(['SEGV', 'ABRT', 'TERM', 'KILL'])
  const { outcome } = await sandbox.run(`kill -${signal} $$`)
  expect(outcome.kind === 'signaled' && outcome.signal === `SIG${signal}`, `dies of ${signal}`, outcome)
  return 'signaled'
}

async function leavesProcesses({ sandbox }) {
  const { outcome } = await sandbox.run('setsid sleep 2 >/dev/null 2>&1 & (sleep 1 &) ; exit 0')
  expect(outcome.kind === 'exited' && outcome.code === 0, 'exits, and leaves something behind', outcome)
  return 'exited'
}

async function isKept({ sandbox, random }) {
  const process = await sandbox.spawn('while :; do echo tick; sleep 0.01; done')
  const reader = process.stdout.getReader()
  expect(decoder.decode((await reader.read()).value).startsWith('tick'), 'the first that it prints is seen')
  const other = await sandbox.attach(process.pid, { replay: random.chance(0.5) })
  if (random.chance(0.7)) await reader.cancel()
  if (random.chance(0.5)) await sleep(random.below(50))
  const named = random.chance(0.3)
  await (named ? other.kill('SIGTERM') : process.kill())
  const { outcome } = await process.wait()
  expect(named ? outcome.kind === 'signaled' : outcome.kind === 'killed', 'ends as it was ended', outcome)
  return outcome.kind
}

async function hasTerminal({ sandbox, random }) {
  const terminal = await sandbox.terminal({ command: ['sh'], cols: random.between(20, 200), rows: random.between(5, 80) })
  await terminal.write('echo $((6 * 7))x\r')
  let seen = ''
  for await (const chunk of terminal.output) {
    seen += decoder.decode(chunk)
    if (seen.includes('42x')) break
  }
  expect(seen.includes('42x'), 'the shell answers', seen)
  if (random.chance(0.5)) await terminal.resize({ cols: random.between(1, 500), rows: random.between(1, 200) })
  const isAsked = random.chance(0.5)
  await (isAsked ? terminal.write('exit 3\r') : terminal.kill())
  const { outcome } = await terminal.wait()
  expect(isAsked ? outcome.kind === 'exited' && outcome.code === 3 : outcome.kind === 'killed', 'the terminal ends as it was ended', outcome)
  return outcome.kind
}

async function manyAtOnce({ sandbox, random }) {
  const count = random.between(2, 8)
  const results = await Promise.all(Array.from({ length: count }, (_, index) => sandbox.run(['sh', '-c', `exit ${index}`])))
  results.forEach(({ outcome }, index) => expect(outcome.kind === 'exited' && outcome.code === index, `the ${index}th of ${count} exits so`, outcome))
  return 'exited'
}

/** With how often each is done, beside the others. */
export const programActs = [
  { name: 'exits', weight: 12, act: exits },
  { name: 'echoes', weight: 5, act: echoes },
  { name: 'takes too long', weight: 4, act: takesTooLong },
  { name: 'uses too much processor', weight: 2, act: usesTooMuchProcessor },
  { name: 'takes too much memory', weight: 2, act: takesTooMuchMemory },
  { name: 'floods', weight: 5, act: floods },
  { name: 'reader leaves', weight: 5, act: readerLeaves },
  { name: 'is aborted', weight: 5, act: isAborted },
  { name: 'does not start', weight: 2, act: doesNotStart },
  { name: 'dies', weight: 3, act: dies },
  { name: 'leaves processes', weight: 2, act: leavesProcesses },
  { name: 'is kept', weight: 5, act: isKept },
  { name: 'has a terminal', weight: 4, act: hasTerminal },
  { name: 'many at once', weight: 3, act: manyAtOnce },
]
