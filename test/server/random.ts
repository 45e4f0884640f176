/** What random tests go by: the same numbers for the same seed, which their failures name and `GLOVEBOX_SEED` sets. */
export const seed = Number(process.env.GLOVEBOX_SEED ?? 20_261_117)

/** Whether all of it is to be tried, as `npm run test:deep` does. */
export const isDeep = process.env.GLOVEBOX_DEEP === '1'

/** mulberry32 */
export function randomOf(start: number): () => number {
  let state = start
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let value = Math.imul(state ^ (state >>> 15), 1 | state)
    value = (value + Math.imul(value ^ (value >>> 7), 61 | value)) ^ value
    return ((value ^ (value >>> 14)) >>> 0) / 4_294_967_296
  }
}
