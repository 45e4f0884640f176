import { type FilterReading, readNewestFilter } from './newest-filter.js'

interface Prepared {
  readonly reading: Promise<FilterReading>
  readonly name: (pid: number | undefined) => void
}

/**
 * Starting the process that reads a filter takes longer than reading it. For the first program of a cell that is done while the program itself is
 * still being started, once.
 */
export class FilterAhead {
  #starting: NodeJS.Immediate | undefined
  #prepared: Prepared | undefined
  #isDone = false

  /** Later than whatever is being sent now. */
  prepare(): void {
    if (this.#isDone) return
    this.#isDone = true
    this.#starting = setImmediate(() => {
      this.#starting = undefined
      this.#prepared = start()
    })
  }

  read(pid: number): Promise<FilterReading> {
    const { reading, name } = this.#take() ?? start()
    name(pid)
    return reading
  }

  async close(): Promise<void> {
    this.#isDone = true
    const prepared = this.#take()
    prepared?.name(undefined)
    await prepared?.reading
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
