// Makes pools of its own accord by one-shots, and comes to its end without a word to them.
import { createPlatform } from '../../../src/compose.js'
import type { Driver } from '../../../src/contract/driver.js'
import { createBwrapDriver } from '../../../src/drivers/bwrap/driver.js'
import { Sandbox } from '../../../src/sandbox/index.js'
import { tracesOf } from '../cell-traces.js'

const ids: string[] = []
const real = createBwrapDriver()
const driver: Driver = {
  name: real.name,
  tier: real.tier,
  probe: () => real.probe(),
  open: (spec, signal) => {
    ids.push(spec.id)
    return real.open(spec, signal)
  },
}
const platform = createPlatform({ drivers: [driver] })
for (let n = 0; n < 3; n += 1) await Sandbox.run(['true'], { platform })
while (ids.length < 2) await new Promise((resolve) => setTimeout(resolve, 10))
process.stdout.write(`${JSON.stringify({ ids, traces: tracesOf(ids).length })}\n`)
process.on('exit', () => process.stdout.write(`${JSON.stringify(ids)}\n`))
