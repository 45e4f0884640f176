import { Sandbox } from 'glovebox'

const sandbox = await Sandbox.create({ limits: { time: '2s', output: '1m' } })
try {
  const endless = await sandbox.run('while :; do :; done', { timeout: '500ms' })
  const noisy = await sandbox.run(['yes'])
  const refused = await sandbox.run('true', { timeout: '1h' }).catch((error) => error)
  console.log(endless.outcome, noisy.outcome, `${refused.code}: ${refused.message}`)

  await sandbox.limit({ time: '10s' })
  const { runs, outputBytes } = await sandbox.usage()
  const { controls, signature } = await sandbox.receipt()
  const time = controls.find(({ control }) => control === 'limit.time')
  console.log(`${runs} runs printed ${outputBytes} bytes; ${time.control} is ${time.enforced} ms (${time.verdict}), signed by ${signature.keyId}`)
} finally {
  await sandbox.close()
}
