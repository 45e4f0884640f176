// The text of a value, as Node's own prompt shows it, and never an exception.

const inspecting = { depth: 6, maxArrayLength: 200, breakLength: 100, compact: 3, showProxy: false }

/** @returns {{ text: string, isCut: boolean }} */
export function plainText(system, value, mostBytes) {
  try {
    if (typeof value !== 'string') return { text: system.inspect(value, { ...inspecting, maxStringLength: mostBytes }), isCut: false }
    const isCut = value.length > mostBytes
    return { text: system.inspect(isCut ? value.slice(0, mostBytes) : value, { ...inspecting, maxStringLength: null }), isCut }
  } catch (error) {
    return { text: `[${kindOf(value)} that cannot be shown: ${messageOf(system, error)}]`, isCut: false }
  }
}

function kindOf(value) {
  return typeof value === 'function' ? 'function' : 'object'
}

/** Of something thrown, whatever it is. */
export function messageOf(system, error) {
  try {
    const { name, message } = error
    if (typeof message === 'string') return typeof name === 'string' ? `${name}: ${message}` : message
    return system.inspect(error, { depth: 1 })
  } catch {
    return 'something that cannot be shown either'
  }
}
