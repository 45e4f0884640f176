import { describe, expect, it } from 'vitest'
import { Intake } from '../../src/egress/intake.js'
import { largeBytes, Reserve } from '../../src/egress/reserve.js'

const sizeOf = (intake: Intake): number => bufferOf(intake).length

/** Where the next bytes would go. */
function bufferOf({ onread }: Intake): Uint8Array {
  return typeof onread.buffer === 'function' ? onread.buffer() : onread.buffer
}

/** As much as fits is received and lent; the answer gives it back. */
function fill(intake: Intake, count = sizeOf(intake)): () => void {
  let done: (() => void) | undefined
  intake.onBytes = (bytes) => {
    done = intake.lend(bytes)
    return intake.isFree
  }
  intake.onread.callback(count, bufferOf(intake))
  return done as () => void
}

describe('what is received', () => {
  it('goes into a large buffer once a usual one was full, and into a usual one again when little comes', () => {
    const intake = new Intake(new Reserve())
    expect(sizeOf(intake)).toBe(65_536)
    fill(intake)()
    expect(sizeOf(intake)).toBe(largeBytes)
    fill(intake, 200_000)()
    expect(sizeOf(intake)).toBe(largeBytes)
    fill(intake, 1000)()
    expect(sizeOf(intake)).toBeLessThan(largeBytes)
  })

  it('never goes where bytes lie that are lent, whichever buffers they are', () => {
    const reserve = new Reserve()
    const [one, other] = [new Intake(reserve), new Intake(reserve)]
    const lent: { readonly of: Intake; readonly buffer: Uint8Array; readonly done: () => void }[] = []
    for (let turn = 0; turn < 2000; turn += 1) {
      const intake = turn % 3 === 0 ? other : one
      if (!intake.isFree) {
        const first = lent.findIndex((each) => each.of === intake)
        lent.splice(first, 1)[0]?.done()
      }
      const buffer = bufferOf(intake)
      // Not by what they hold: half a mebibyte each would be printed for nobody.
      expect(lent.some((each) => each.buffer === buffer)).toBe(false)
      lent.push({ of: intake, buffer, done: fill(intake, turn % 7 < 5 ? buffer.length : 1 + (turn % 5000)) })
    }
  })

  it('has four large buffers for all connections together, and those of one that is gone are for others', () => {
    const reserve = new Reserve()
    const many = Array.from({ length: 100 }, () => new Intake(reserve))
    for (const intake of many) fill(intake)()
    expect(many.filter((intake) => sizeOf(intake) === largeBytes).length).toBe(4)
    const [first, second] = many.filter((intake) => sizeOf(intake) === largeBytes) as [Intake, Intake]
    const kept = bufferOf(first)
    const done = fill(first)
    for (const intake of [first, first, second, second]) intake.close()
    for (const intake of many.filter((each) => each !== first && each !== second)) fill(intake)()
    expect(many.filter((intake) => sizeOf(intake) === largeBytes).length).toBe(4)
    // What was lent when its connection went may still be on its way.
    expect(many.some((intake) => bufferOf(intake) === kept)).toBe(false)
    done()
    expect(reserve.take()).toBeUndefined()
  })
})
