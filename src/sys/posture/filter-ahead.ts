import { FilterPipe, type InspectorPipe } from './filter-pipe.js'
import { type FilterReading, filterTimeoutMs, readNewestFilter, whyUnreadable } from './newest-filter.js'

interface Prepared {
  readonly reading: Promise<FilterReading>
  readonly name: (pid: number | undefined) => void
}

/**
 * Starting the process that reads a filter takes longer than reading it. For the first program of a cell one waits that was started with the cell; where there is none, it
 * is started while the program itself is still being started, once.
 */
export class FilterAhead {
  #pipe: FilterPipe | undefined
  #asked: FilterPipe | undefined
  #starting: NodeJS.Immediate | undefined
  #prepared: Prepared | undefined
  #isDone = false

  constructor(pipe?: InspectorPipe) {
    this.#pipe = pipe && new FilterPipe(pipe, filterTimeoutMs)
  }

  /** Later than whatever is being sent now. */
  prepare(): void {
    if (this.#isDone || this.#pipe) return
    this.#isDone = true
    this.#starting = setImmediate(() => {
      this.#starting = undefined
      this.#prepared = start()
    })
  }

  async read(pid: number): Promise<FilterReading> {
    this.#isDone = true
    if (this.#pipe) return this.#ask(this.#pipe, pid)
    const { reading, name } = this.#take() ?? start()
    name(pid)
    return reading
  }

  async close(): Promise<void> {
    this.#isDone = true
    const prepared = this.#take()
    prepared?.name(undefined)
    await Promise.all([prepared?.reading, this.#pipe?.close(), this.#asked?.close()])
  }

  async #ask(pipe: FilterPipe, pid: number): Promise<FilterReading> {
    this.#pipe = undefined
    this.#asked = pipe
    const why = whyUnreadable()
    return why === undefined ? pipe.read(pid) : { unreadable: why }
  }

  #take(): Prepared | undefined {
    clearImmediate(this.#starting)
    const prepared = this.#prepared
    this.#prepared = undefined
    return prepared
  }
}

function start(): Prepared {
  let name: Prepared['name'] = () => undefined
  const pid = new Promise<number | undefined>((resolve) => {
    name = resolve
  })
  return { reading: readNewestFilter(pid), name }
}
