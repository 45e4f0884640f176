import { Sandbox } from 'glovebox'

const sandbox = await Sandbox.create({ limits: { time: '2s', output: '1m' } })
try {
  const endless = await sandbox.run('while :; do :; done', { timeout: '500ms' })
  const noisy = await sandbox.run(['yes'])
  const refused = await sandbox.run('true', { timeout: '1h' }).catch((error) => error)
  console.log(endless.outcome, noisy.outcome, `${refused.code}: ${refused.message}`)
} finally {
  await sandbox.close()
}
