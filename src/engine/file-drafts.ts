/** What a worker that was killed can leave: what it was copying, under a name with its number in it. */
import { Deadline } from './deadline.js'
import { below, decode } from './file-entry.js'
import { FileOperation, type OperationOrder } from './file-operation.js'
import type { CellFileWorker } from './file-workers.js'

/** So long its caller waits for it; a large folder takes longer, and goes while nobody waits. */
const waitMs = 5000

const slash = 0x2f

interface DraftOrder {
  readonly order: OperationOrder
  readonly place: Uint8Array
  readonly canRepeat?: () => boolean
}

/** Does this with a worker; when the worker is lost over it, another removes what it left beside `place`. */
export async function runWithDraft<T>({ order, place, canRepeat }: DraftOrder, act: (worker: CellFileWorker) => Promise<T>): Promise<T> {
  let used: CellFileWorker | undefined
  try {
    return await FileOperation.run(
      order,
      (worker) => {
        used = worker
        return act(worker)
      },
      canRepeat,
    )
  } catch (error) {
    if (used && !used.client.isIdle) await atMost(waitMs, removeDrafts(order, { folder: folderOf(place), pid: used.pid }))
    throw error
  }
}

interface Remains {
  readonly folder: Uint8Array
  /** As seen in the cell. */
  readonly pid: number
}

/** Never rejects: the sandbox may be over, stand still, or kill this worker as well. */
async function removeDrafts({ host, call, user }: OperationOrder, { folder, pid }: Remains): Promise<void> {
  try {
    await FileOperation.run({ host, call, user, signal: undefined }, async ({ client }) => {
      const left: Uint8Array[] = []
      for await (const { name } of client.list(folder, { depth: 1 })) if (decode(name).startsWith(`.glovebox-${pid}-`)) left.push(name)
      for (const name of left) await client.remove(below(folder, name), { recursive: true })
    })
  } catch {
    // Told already: the operation that left it has failed.
  }
}

async function atMost(timeMs: number, work: Promise<void>): Promise<void> {
  let deadline: Deadline | undefined
  const late = new Promise<void>((resolve) => {
    deadline = new Deadline(timeMs, resolve)
  })
  await Promise.race([work, late])
  deadline?.cancel()
}

function folderOf(path: Uint8Array): Uint8Array {
  let end = path.length
  while (end > 0 && path[end - 1] === slash) end -= 1
  while (end > 0 && path[end - 1] !== slash) end -= 1
  return path.subarray(0, Math.max(end, 1))
}
