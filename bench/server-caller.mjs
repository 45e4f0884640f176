/**
 * Callers that cost little themselves: each keeps its connection, writes a request that was put together once, and reads no more of the answer than its length and its body. What
 * a program in any language with a pool of connections does; the rest of the processors is the server's.
 */
import { connect } from 'node:net'

const headEnd = Buffer.from('\r\n\r\n')

/** Asks the same again and again, over as many connections as there are calls at once. Resolves to the body of a 200. */
export function callerOf({ port, key }, path, body) {
  const text = JSON.stringify(body)
  const head = [
    `POST ${path} HTTP/1.1`,
    'host: 127.0.0.1',
    `authorization: Bearer ${key}`,
    'content-type: application/json',
    `content-length: ${Buffer.byteLength(text)}`,
  ]
  const request = Buffer.from(`${head.join('\r\n')}\r\n\r\n${text}`)
  const idle = []
  const all = new Set()
  return {
    ask: async () => {
      const line = idle.pop() ?? (await openLine(port, all))
      const answer = await line.ask(request)
      idle.push(line)
      return answer
    },
    close: () => all.forEach((socket) => socket.destroy()),
  }
}

async function openLine(port, all) {
  const socket = connect({ port, host: '127.0.0.1', noDelay: true })
  all.add(socket)
  let answer = Buffer.alloc(0)
  let waiting
  const fail = (error) => waiting?.reject(error)
  socket.on('error', fail)
  socket.on('close', () => fail(new Error('the server closed the connection')))
  socket.on('data', (piece) => {
    answer = answer.length === 0 ? piece : Buffer.concat([answer, piece])
    const end = answer.indexOf(headEnd)
    if (end === -1) return
    const head = answer.toString('latin1', 0, end)
    const length = Number(/content-length: (\d+)/i.exec(head)?.[1])
    const whole = end + headEnd.length + length
    if (answer.length < whole) return
    const body = answer.toString('utf8', end + headEnd.length, whole)
    answer = answer.subarray(whole)
    if (head.startsWith('HTTP/1.1 200 ')) waiting?.resolve(body)
    else fail(new Error(`${head.slice(0, 40)}: ${body}`))
  })
  return {
    ask: (request) =>
      new Promise((resolve, reject) => {
        waiting = { resolve, reject }
        socket.write(request)
      }),
  }
}
