import type { Chart } from '../contract/charts.js'
import type { CodeResult, Table } from '../contract/code.js'

const vegaPattern = /^application\/vnd\.vega(?:lite)?\.v\d+(?:\.json|\+json)$/

/** One value that code gave, in all the forms that it has. A form that it does not have is undefined. */
export class Result {
  /** The value of the last expression, rather than something displayed on the way. */
  readonly isMain: boolean
  /** Types that were shortened or left out, because a result has a bound. */
  readonly cut: readonly string[]
  /** By MIME type: text, base64 of png, jpeg and pdf, JSON of types that end in json. */
  readonly raw: Readonly<Record<string, unknown>>
  readonly #decoded = new Map<string, Uint8Array>()

  constructor({ isMain, cut, data }: CodeResult) {
    this.isMain = isMain
    this.cut = cut
    this.raw = data
  }

  /** The MIME types that it has. */
  get types(): readonly string[] {
    return Object.keys(this.raw)
  }

  get text(): string | undefined {
    return this.#textOf('text/plain')
  }

  get html(): string | undefined {
    return this.#textOf('text/html')
  }

  get markdown(): string | undefined {
    return this.#textOf('text/markdown')
  }

  get svg(): string | undefined {
    return this.#textOf('image/svg+xml')
  }

  get latex(): string | undefined {
    return this.#textOf('text/latex')
  }

  get javascript(): string | undefined {
    return this.#textOf('application/javascript') ?? this.#textOf('text/javascript')
  }

  get png(): Uint8Array | undefined {
    return this.#bytesOf('image/png')
  }

  get jpeg(): Uint8Array | undefined {
    return this.#bytesOf('image/jpeg')
  }

  get pdf(): Uint8Array | undefined {
    return this.#bytesOf('application/pdf')
  }

  get json(): unknown {
    return this.#valueOf('application/json')
  }

  get plotly(): unknown {
    return this.#valueOf('application/vnd.plotly.v1+json')
  }

  /** Vega or Vega-Lite, of any version. */
  get vega(): unknown {
    const type = this.types.find((each) => vegaPattern.test(each))
    return type === undefined ? undefined : this.#valueOf(type)
  }

  /** A table's columns. The guest's word, as all of a result is: whoever draws it checks it. */
  get data(): Table | undefined {
    return this.#valueOf('application/vnd.glovebox.table+json') as Table | undefined
  }

  /** What a figure shows. */
  get chart(): Chart | undefined {
    return this.#valueOf('application/vnd.glovebox.chart+json') as Chart | undefined
  }

  /** Binary forms are in base64. */
  toJSON(): { readonly isMain: boolean; readonly cut: readonly string[]; readonly data: Readonly<Record<string, unknown>> } {
    return { isMain: this.isMain, cut: this.cut, data: this.raw }
  }

  #valueOf(type: string): unknown {
    return Object.hasOwn(this.raw, type) ? this.raw[type] : undefined
  }

  #textOf(type: string): string | undefined {
    const value = this.#valueOf(type)
    return typeof value === 'string' ? value : undefined
  }

  /** Decoded when it is first asked for. */
  #bytesOf(type: string): Uint8Array | undefined {
    const text = this.#textOf(type)
    if (text === undefined) return undefined
    const bytes = this.#decoded.get(type) ?? fromBase64(text)
    this.#decoded.set(type, bytes)
    return bytes
  }
}

/** In memory of its own. */
function fromBase64(text: string): Uint8Array {
  return Uint8Array.from(Buffer.from(text, 'base64'))
}
