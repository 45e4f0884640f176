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
const isCode = process.argv[2] === 'code'
for (let n = 0; n < 3; n += 1) await (isCode ? Sandbox.code('1', { platform }) : Sandbox.run(['true'], { platform }))
while (ids.length < (isCode ? 4 : 2)) await new Promise((resolve) => setTimeout(resolve, 10))
process.stdout.write(`${JSON.stringify({ ids, traces: tracesOf(ids).length })}\n`)
process.on('exit', () => process.stdout.write(`${JSON.stringify(ids)}\n`))
