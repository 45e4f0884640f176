/** What is done without a sandbox of one's own: pools, one-shots, and sandboxes that end under what runs in them. */
import { expect } from './accounts.mjs'

async function comesFromPool({ pool, random }) {
  const n = random.below(1e6)
  if (random.chance(0.6)) {
    const { stdout } = await pool.run(['python3', '-c', `print(${n} + 1)`])
    expect(stdout === `${n + 1}\n`, 'a run of the pool answers', stdout)
    return 'run'
  }
  const sandbox = await pool.acquire({ name: `p${n}` })
  const { outcome } = await sandbox.run(['true'])
  expect(outcome.kind === 'exited', 'what the pool gave runs', outcome)
  await (random.chance(0.5) ? pool.release(sandbox) : sandbox.close())
  return 'acquired'
}

async function isOneShot({ Sandbox, platform, random }) {
  const fresh = random.pick(['liner', 'cell'])
  const { stdout } = await Sandbox.run(['sh', '-c', 'echo $((6 * 7))'], { platform, fresh })
  expect(stdout === '42\n', `a one-shot in a fresh ${fresh} answers`, stdout)
  return fresh
}

async function oneShotIsAborted({ Sandbox, platform, random }) {
  const reason = new Error('called off')
  const stop = new AbortController()
  const timer = setTimeout(() => stop.abort(reason), random.below(80))
  try {
    await Sandbox.run(['sleep', '60'], { platform, signal: stop.signal })
  } catch (error) {
    expect(error === reason, 'a one-shot that is called off rejects with the reason', error)
    return 'aborted'
  } finally {
    clearTimeout(timer)
  }
  return expect(false, 'a one-shot that is called off does not resolve')
}

async function endsUnderRun({ create, random }) {
  const sandbox = await create()
  const run = sandbox.run(random.pick(['sleep 60', 'yes']))
  const told = run.then(
    ({ outcome }) => outcome.kind,
    (error) => error.code,
  )
  if (random.chance(0.5)) await new Promise((resolve) => setTimeout(resolve, random.below(100)))
  await sandbox.close()
  const kind = await told
  expect(['closed', 'killed', 'not-found', 'output-limit'].includes(kind), 'a run whose sandbox is closed is told so', kind)
  return kind
}

async function creationIsAborted({ create, random }) {
  const reason = new Error('called off')
  const stop = new AbortController()
  const timer = setTimeout(() => stop.abort(reason), random.below(40))
  try {
    const sandbox = await create({ signal: stop.signal })
    await sandbox.close()
    return 'created before'
  } catch (error) {
    expect(error === reason, 'a creation that is called off rejects with the reason', error)
    return 'aborted'
  } finally {
    clearTimeout(timer)
  }
}

async function expires({ create }) {
  const sandbox = await create({ lifetime: '1s' })
  const code = await sandbox.run(['sleep', '30']).then(
    ({ outcome }) => outcome.kind,
    (error) => error.code,
  )
  expect(['expired', 'closed', 'killed', 'not-found'].includes(code), 'a run whose sandbox expires is told so', code)
  return `${code}`
}

async function isRefused({ create, random }) {
  const [spec, code] = random.pick([
    [{ limits: { memory: 'much' } }, 'invalid'],
    [{ template: 'there-is-none' }, 'not-found'],
    [{ from: 'no such snapshot' }, 'not-found'],
  ])
  const found = await create(spec).then(
    () => 'created',
    (error) => error.code,
  )
  expect(found === code || (code === 'not-found' && found === 'invalid'), `is refused with ${code}`, found)
  return found
}

export const aloneActs = [
  { name: 'comes from a pool', weight: 5, act: comesFromPool },
  { name: 'is a one-shot', weight: 5, act: isOneShot },
  { name: 'a one-shot is aborted', weight: 2, act: oneShotIsAborted },
  { name: 'ends under a run', weight: 3, act: endsUnderRun },
  { name: 'a creation is aborted', weight: 2, act: creationIsAborted },
  { name: 'expires', weight: 1, act: expires },
  { name: 'is refused', weight: 1, act: isRefused },
]
