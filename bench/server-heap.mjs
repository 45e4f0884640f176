/** What lives on the heap of a Node process that was started with --inspect, once all that is dead was taken away. */
import { once } from 'node:events'
import WebSocket from 'ws'

/** `url`: as the process tells it when it starts. */
export async function openHeap(url) {
  const web = new WebSocket(url)
  await once(web, 'open')
  const waiting = new Map()
  let last = 0
  web.on('message', (data) => {
    const { id, result, error } = JSON.parse(data)
    const { resolve, reject } = waiting.get(id) ?? {}
    waiting.delete(id)
    if (error) reject?.(new Error(error.message))
    else resolve?.(result)
  })
  const ask = (method, params = {}) =>
    new Promise((resolve, reject) => {
      last += 1
      waiting.set(last, { resolve, reject })
      web.send(JSON.stringify({ id: last, method, params }))
    })
  return {
    /** In bytes, after everything that nobody holds is gone. */
    async liveBytes() {
      // What a first collection finishes lets go of more.
      for (let round = 0; round < 3; round++) await ask('HeapProfiler.collectGarbage')
      return (await ask('Runtime.getHeapUsage')).usedSize
    },
    /** What keeps its event loop: sockets, timers, watchers, by kind. */
    async resources() {
      const { result } = await ask('Runtime.evaluate', { expression: 'JSON.stringify(process.getActiveResourcesInfo())', returnByValue: true })
      const kinds = JSON.parse(result.value)
      return Object.fromEntries([...new Set(kinds)].sort().map((kind) => [kind, kinds.filter((each) => each === kind).length]))
    },
    close: () => web.terminate(),
  }
}
