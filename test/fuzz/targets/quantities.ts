import { pathBytes, pathText } from '../../../src/contract/path-text.js'
import { bytesInUnits, bytesSchema, durationInUnits, durationSchema, exactly } from '../../../src/contract/quantities.js'
import { type FuzzTarget, holds, isSame, textIn } from '../target.js'

const bytesOf = bytesSchema({ min: 0, max: 2 ** 44, example: '512m' })
const durationOf = durationSchema({ min: 0, max: 2 ** 40, example: '60s' })

/** Sizes, durations and paths, as people write them. */
export const target: FuzzTarget = {
  name: 'quantities',
  most: 100,
  seeds: ['512m', '60s', '1.5g', '100', '0x10', '1h30m', '1.0000001t', '/workspace/a', Buffer.of(0x2f, 0xff, 0xfe)],
  run(bytes) {
    const text = textIn(bytes)
    const size = bytesOf.safeParse(text)
    if (size.success) {
      holds(Number.isSafeInteger(size.data) && size.data >= 0, 'a size is a number')
      isSame(bytesOf.parse(exactly('bytes', size.data)), size.data, 'a size that is written is read as itself')
      bytesInUnits(size.data, Math.floor)
    }
    const time = durationOf.safeParse(text)
    if (time.success) {
      isSame(durationOf.parse(exactly('duration', time.data)), time.data, 'a duration that is written is read as itself')
      durationInUnits(time.data, Math.round)
    }
    holds(Buffer.from(pathBytes(pathText(bytes))).equals(bytes), 'any bytes can be a path')
  },
}
