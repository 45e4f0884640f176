import { type FilterReading, readNewestFilter } from './newest-filter.js'

interface Prepared {
  readonly reading: Promise<FilterReading>
  readonly name: (pid: number | undefined) => void
}

/** What was made ready for nobody is let go again, because it is a process that waits. */
const patienceMs = 250

/**
 * Starting the process that reads a filter takes longer than reading it. For the first program of a cell that is done while the cell is still being
 * built, or, when that was long ago, while the program itself is being started.
 */
export class FilterAhead {
  #starting: NodeJS.Immediate | undefined
  #prepared: Prepared | undefined
  #patience: NodeJS.Timeout | undefined
  #leaving: Promise<unknown> | undefined
  #isDone = false

  /** Later than whatever is being sent now. */
  prepare(): void {
    if (this.#isDone || this.#prepared) return
    this.#starting ??= setImmediate(() => {
      this.#starting = undefined
      this.#prepared = start()
      this.#patience = setTimeout(() => this.#letGo(), patienceMs)
    })
  }

  read(pid: number): Promise<FilterReading> {
    this.#isDone = true
    const { reading, name } = this.#take() ?? start()
    name(pid)
    return reading
  }

  async close(): Promise<void> {
    this.#isDone = true
    this.#letGo()
    await this.#leaving
  }

  #letGo(): void {
    const prepared = this.#take()
    prepared?.name(undefined)
    this.#leaving = prepared?.reading ?? this.#leaving
  }

  #take(): Prepared | undefined {
    clearImmediate(this.#starting)
    clearTimeout(this.#patience)
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
