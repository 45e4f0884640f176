// JSON of a value of the user's, for as long as it fits. JSON.stringify would make all of it first, however much it is.

const mostDepth = 500

class Unfit extends Error {}

/** Code of the value's own can run for ever in here: only from within an evaluation. @returns {{ json: string } | { why: 'cut' | 'none' }} */
export function boundedJson(value, mostBytes) {
  const writer = { parts: [], left: mostBytes, above: [] }
  try {
    write(value, '', writer)
    return writer.parts.length === 0 ? { why: 'none' } : { json: writer.parts.join('') }
  } catch (error) {
    // A getter or a `toJSON` that throws: it has no JSON.
    return { why: error instanceof Unfit ? error.message : 'none' }
  }
}

function put(writer, text) {
  writer.left -= text.length
  if (writer.left < 0) throw new Unfit('cut')
  writer.parts.push(text)
}

/** @returns {boolean} whether it has a form: functions and undefined have none */
function write(given, key, writer) {
  const value = typeof given?.toJSON === 'function' ? given.toJSON(key) : given
  switch (typeof value) {
    case 'string':
      if (value.length > writer.left) throw new Unfit('cut')
      put(writer, JSON.stringify(value))
      return true
    case 'number':
    case 'boolean':
      put(writer, JSON.stringify(value))
      return true
    case 'object':
      writeObject(value, writer)
      return true
    case 'bigint':
      throw new Unfit('none')
    default:
      return false
  }
}

function writeObject(value, writer) {
  if (value === null) return put(writer, 'null')
  if (writer.above.includes(value) || writer.above.length >= mostDepth) throw new Unfit('none')
  writer.above.push(value)
  if (Array.isArray(value)) writeArray(value, writer)
  else writeMembers(value, writer)
  writer.above.pop()
}

function writeArray(value, writer) {
  const { length } = value
  if (length > writer.left) throw new Unfit('cut')
  put(writer, '[')
  for (let index = 0; index < length; index++) {
    if (index > 0) put(writer, ',')
    if (!write(value[index], String(index), writer)) put(writer, 'null')
  }
  put(writer, ']')
}

function writeMembers(value, writer) {
  put(writer, '{')
  let isFirst = true
  for (const key of Object.keys(value)) {
    const start = writer.parts.length
    put(writer, `${isFirst ? '' : ','}${JSON.stringify(key)}:`)
    if (write(value[key], key, writer)) isFirst = false
    else for (const text of writer.parts.splice(start)) writer.left += text.length
  }
  put(writer, '}')
}
