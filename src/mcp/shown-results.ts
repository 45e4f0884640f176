/** What executions display, as blocks that a client shows and as data, each within its bound. */
import type { CodeResult } from '../contract/code.js'
import type { Block } from './answers.js'
import { pictureType } from './mime.js'

const mostPictures = 8
const mostPictureBytes = 5 * 2 ** 20
const mostTextCharacters = 20_000
const mostJsonCharacters = 60_000
const mostResults = 100

const chartType = 'application/vnd.glovebox.chart+json'
const tableType = 'application/vnd.glovebox.table+json'
const svgType = 'image/svg+xml'

interface Told {
  readonly is_main: boolean
  readonly types: readonly string[]
  readonly text?: string
  readonly chart?: unknown
  readonly table?: unknown
}

export class ShownResults {
  readonly told: Told[] = []
  /** For whoever reads only text. */
  readonly texts: string[] = []
  readonly blocks: Block[] = []
  readonly remarks: string[] = []
  mainText: string | undefined
  #pictures = 0
  #jsonCharacters = 0
  #dropped = 0

  add({ isMain, data, cut }: CodeResult): void {
    if (this.told.length >= mostResults) {
      this.#drop()
      return
    }
    const plain = typeof data['text/plain'] === 'string' ? shorten(data['text/plain']) : undefined
    if (isMain) this.mainText = plain
    const isPicture = this.#addPicture(data)
    if (plain !== undefined && !isPicture) this.texts.push(plain)
    const chart = this.#bounded(data[chartType], 'the data of a chart')
    const table = this.#bounded(data[tableType], 'the values of a table')
    this.told.push({
      is_main: isMain,
      types: Object.keys(data),
      ...(plain !== undefined && { text: plain }),
      ...(chart !== undefined && { chart }),
      ...(table !== undefined && { table }),
    })
    if (cut.length > 0) this.remarks.push(`a result was larger than 10 MiB and was cut (${cut.join(', ')}); write it to a file below /workspace instead`)
  }

  #drop(): void {
    this.#dropped += 1
    if (this.#dropped === 1) this.remarks.push(`only the first ${mostResults} results are told`)
  }

  #addPicture(data: CodeResult['data']): boolean {
    const encoded = data['image/png'] ?? data['image/jpeg']
    const svg = data[svgType]
    if (typeof encoded !== 'string') return typeof svg === 'string' && this.#addSvg(svg)
    const bytes = Buffer.from(encoded, 'base64')
    const mimeType = pictureType(bytes)
    if (mimeType === undefined) return false
    if (bytes.length > mostPictureBytes || this.#pictures >= mostPictures) {
      this.remarks.push(
        `a picture of ${bytes.length} bytes is not shown (at most ${mostPictures} of ${mostPictureBytes} bytes); save it below /workspace and read that as a resource`,
      )
      return true
    }
    this.#pictures += 1
    // Encoded again: what a guest calls base64 may be anything.
    this.blocks.push({ type: 'image', data: bytes.toString('base64'), mimeType })
    return true
  }

  #addSvg(svg: string): boolean {
    if (svg.length > mostJsonCharacters) {
      this.remarks.push(`an SVG of ${svg.length} characters is not shown; save it below /workspace and read that as a resource`)
      return true
    }
    this.blocks.push({ type: 'resource', resource: { uri: `sandbox://results/${this.told.length + 1}.svg`, mimeType: svgType, text: svg } })
    return true
  }

  #bounded(value: unknown, what: string): unknown {
    if (value === undefined) return undefined
    const size = JSON.stringify(value).length
    if (this.#jsonCharacters + size > mostJsonCharacters) {
      this.remarks.push(`${what} is left out (${size} characters); write it to a file below /workspace and read that with read_file`)
      return undefined
    }
    this.#jsonCharacters += size
    return value
  }
}

function shorten(words: string): string {
  return words.length <= mostTextCharacters ? words : `${words.slice(0, mostTextCharacters)}\n[… ${words.length - mostTextCharacters} characters left out …]`
}
