/** What an ordinary user gets of an engine: one sandbox with mounts, what ran in it, its receipt, and what was refused. */
import { createDockerDriver } from '../../../../src/drivers/docker/driver.js'
import { engineOptions } from '../../../../src/compose.js'
import { Engine } from '../../../../src/engine/engine.js'
import { Sandbox } from '../../../../src/index.js'

const [, , path = '', folder = ''] = process.argv
const driver = createDockerDriver({ address: { kind: 'socket', path } })
// In a bundle nobody finds the version of the package.
const machine = { version: '0.0.0', kernel: '', arch: process.arch, processors: 1, freeBytes: () => 2 ** 30 }
const platform = new Engine({ ...engineOptions({ drivers: [driver] }), machine })
const probe = await driver.probe()
const wish = { platform, driver: 'docker' } as const
const refused = async (more: Parameters<typeof Sandbox.create>[0]): Promise<string> =>
  Sandbox.create({ ...wish, ...more }).then(
    async (sandbox) => {
      await sandbox.close()
      return 'was created'
    },
    (error: Error) => error.message,
  )
const sandbox = await Sandbox.create({
  ...wish,
  limits: { cpus: 0.25, processes: 20 },
  mounts: [
    { source: `${folder}/in`, target: '/input' },
    { source: `${folder}/out`, target: '/output', mode: 'rw' },
    { source: `${folder}/in`, target: '/workspace', mode: 'overlay' },
  ],
})
const words = 'cat /input/a; id -u; echo made > /output/made; echo x > /input/b; echo y > /workspace/a; cat /workspace/a; cat /proc/self/status | grep ^Groups'
const ran = await sandbox.run(['sh', '-c', words])
const receipt = await sandbox.receipt()
const memory = await refused({ limits: { memory: '64m' } })
const foreign = await refused({ mounts: [{ source: `${folder}/foreign`, target: '/data', mode: 'rw' }] })
await sandbox.close()
await platform[Symbol.asyncDispose]()
process.stdout.write(`${JSON.stringify({ probe, ran, controls: receipt.controls, memory, foreign })}\n`)
