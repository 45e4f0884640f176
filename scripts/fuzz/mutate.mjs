// Changes to bytes: those that parsers are known to mind. Structure is kept where there is one: JSON is changed as a value, texts by the words of the code.

/** @typedef {{ below(bound: number): number, chance(share: number): boolean, pick<T>(items: readonly T[]): T }} Random */
/** @typedef {{ random: Random, corpus: readonly Uint8Array[], tokens: readonly string[], most: number }} Kitchen */

/** Mulberry32. @param {number} seed @returns {Random} */
export function randomOf(seed) {
  let state = seed >>> 0
  const next = () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
  const below = (/** @type {number} */ bound) => Math.floor(next() * bound)
  return { below, chance: (share) => next() < share, pick: (items) => /** @type {any} */ (items)[below(items.length)] }
}

const numbers = [
  0,
  1,
  2,
  3,
  4,
  7,
  8,
  15,
  16,
  31,
  32,
  63,
  64,
  127,
  128,
  255,
  256,
  257,
  4095,
  4096,
  32_767,
  32_768,
  65_535,
  65_536,
  2 ** 24,
  2 ** 31 - 1,
  2 ** 31,
  2 ** 32 - 1,
]
const texts = [
  '',
  '\0',
  '\n',
  '\r\n',
  '%00',
  '..',
  '/',
  '//',
  '../',
  '\\',
  ':',
  '@',
  '*',
  '*.',
  '[',
  ']',
  '-',
  '--',
  '=',
  '\u202e',
  '①',
  'ſ',
  'İ',
  '\ud800',
  '__proto__',
  'constructor',
  '1e999',
  '-0',
  '0x7f',
  '9007199254740993',
]
const values = [null, true, false, 0, -1, 1, 0.5, 2 ** 31, 2 ** 53, 1e308, -1e308, '', 'a', [], {}, [null], ['a', 'a'], { '': 0 }, { __proto__x: 1 }]
const encoder = new TextEncoder()

/** @param {Uint8Array} bytes @param {{ at: number, removed: number, added: Uint8Array }} change */
function splice(bytes, { at, removed: wanted, added }) {
  const removed = Math.min(wanted, bytes.length - at)
  const changed = new Uint8Array(bytes.length - removed + added.length)
  changed.set(bytes.subarray(0, at))
  changed.set(added, at)
  changed.set(bytes.subarray(at + removed), at + added.length)
  return changed
}

/** @type {((bytes: Uint8Array, kitchen: Kitchen) => Uint8Array)[]} */
const changes = [
  (bytes, { random }) => {
    const changed = bytes.slice()
    const at = random.below(changed.length)
    if (changed.length > 0) changed[at] = (changed[at] ?? 0) ^ (1 << random.below(8))
    return changed
  },
  (bytes, { random }) => {
    const changed = bytes.slice()
    if (changed.length > 0) changed[random.below(changed.length)] = random.pick([0, 0x0a, 0x0d, 0x20, 0x2f, 0x2e, 0x3a, 0x7f, 0x80, 0xff, random.below(256)])
    return changed
  },
  (bytes, { random }) =>
    splice(bytes, { at: random.below(bytes.length + 1), removed: 0, added: Uint8Array.from({ length: 1 + random.below(8) }, () => random.below(256)) }),
  (bytes, { random }) => {
    const at = random.below(bytes.length + 1)
    return splice(bytes, { at, removed: Math.min(bytes.length - at, 1 + random.below(16)), added: new Uint8Array() })
  },
  // A part of it again, somewhere.
  (bytes, { random }) => {
    const from = random.below(bytes.length + 1)
    const part = bytes.subarray(from, from + 1 + random.below(random.chance(0.2) ? 512 : 32))
    return splice(bytes, { at: random.below(bytes.length + 1), removed: random.chance(0.5) ? 0 : part.length, added: part })
  },
  (bytes, { random }) => number(bytes, random),
  (bytes, { random, tokens }) => {
    const word = encoder.encode(random.chance(0.7) && tokens.length > 0 ? random.pick(tokens) : random.pick(texts))
    const at = random.below(bytes.length + 1)
    return splice(bytes, { at, removed: random.chance(0.5) ? Math.min(word.length, bytes.length - at) : 0, added: word })
  },
  // Digits of a text, as a number that is near a bound.
  (bytes, { random }) => {
    const digits = [...Buffer.from(bytes).toString('latin1').matchAll(/\d+/g)]
    if (digits.length === 0) return bytes.slice()
    const { index = 0, 0: found } = random.pick(digits)
    return splice(bytes, { at: index, removed: found.length, added: encoder.encode(`${random.pick(numbers)}`) })
  },
  (bytes, { random, corpus }) => {
    const other = random.pick(corpus)
    return splice(bytes, { at: random.below(bytes.length + 1), removed: 0, added: other.subarray(random.below(other.length + 1)) })
  },
  (bytes, { random, corpus }) => {
    const other = random.pick(corpus)
    const at = random.below(Math.min(bytes.length, other.length) + 1)
    return splice(bytes.subarray(0, at), { at, removed: 0, added: other.subarray(at) })
  },
  (bytes, kitchen) => json(bytes, kitchen),
  (bytes, kitchen) => json(bytes, kitchen),
]

/** A field of 1, 2, 4 or 8 bytes, in either order. @param {Uint8Array} bytes @param {Random} random */
function number(bytes, random) {
  const width = random.pick([1, 2, 4, 8])
  if (bytes.length < width) return bytes.slice()
  const changed = bytes.slice()
  const view = new DataView(changed.buffer)
  const at = random.below(bytes.length - width + 1)
  const value = random.pick(numbers) + (random.chance(0.3) ? random.below(3) - 1 : 0)
  const isLittle = random.chance(0.5)
  if (width === 1) view.setUint8(at, value)
  else if (width === 2) view.setUint16(at, value, isLittle)
  else if (width === 4) view.setUint32(at, value, isLittle)
  else view.setBigUint64(at, BigInt(Math.max(0, value)) << BigInt(random.pick([0, 0, 31, 32])), isLittle)
  return changed
}

/** One place of the value is another value; what is no JSON stays as it is. @param {Uint8Array} bytes @param {Kitchen} kitchen */
function json(bytes, { random, tokens, corpus }) {
  const [first] = bytes
  if (first !== 0x7b && first !== 0x5b) return bytes.slice()
  /** @type {any} */
  let value
  try {
    value = JSON.parse(Buffer.from(bytes).toString())
  } catch {
    return bytes.slice()
  }
  /** @type {[any, string | number][]} */
  const places = []
  const collect = (/** @type {any} */ node) => {
    if (typeof node !== 'object' || node === null || places.length > 500) return
    for (const key of Object.keys(node)) {
      places.push([node, key])
      collect(node[key])
    }
  }
  collect(value)
  if (places.length === 0) return bytes.slice()
  const [node, key] = random.pick(places)
  const word = () => (tokens.length > 0 && random.chance(0.7) ? random.pick(tokens) : random.pick(texts))
  const kind = random.below(7)
  if (kind === 0) Reflect.deleteProperty(node, key)
  else if (kind === 1) node[key] = structuredClone(random.pick(values))
  else if (kind === 2) node[key] = word()
  else if (kind === 3) node[key] = random.pick(numbers) * random.pick([1, -1])
  else if (kind === 4 && !Array.isArray(node)) node[word()] = node[key]
  else if (kind === 5) [node[key]] = [structuredClone(random.pick(places)[0])]
  else if (typeof node[key] === 'string') node[key] = Buffer.from(changeOnce(encoder.encode(node[key]), { random, tokens, corpus, most: 4096 })).toString()
  else node[key] = [node[key]]
  return encoder.encode(JSON.stringify(value))
}

/** @param {Uint8Array} bytes @param {Kitchen} kitchen */
function changeOnce(bytes, kitchen) {
  return kitchen.random.pick(changes.slice(0, 8))(bytes, kitchen)
}

/** One to a few changes on top of each other. @param {Uint8Array} bytes @param {Kitchen} kitchen */
export function mutate(bytes, kitchen) {
  const { random, most } = kitchen
  let changed = bytes
  for (let left = 1 + (random.chance(0.5) ? 0 : random.below(6)); left > 0; left -= 1) changed = random.pick(changes)(changed, kitchen)
  return changed.length > most ? changed.slice(0, most) : changed
}
