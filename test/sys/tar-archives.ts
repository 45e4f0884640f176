/** Archives as someone who wants out would write them: by hand, knowing nothing of our own writer. */
export interface CraftedEntry {
  readonly name: string | Buffer
  /** The letter of its type; `0` when not given. */
  readonly type?: string
  readonly content?: string | Buffer
  readonly target?: string
  readonly mode?: number
  /** Another size than that of the content. */
  readonly size?: number
}

export function craftTar(entries: readonly CraftedEntry[], options: { readonly end?: boolean } = {}): Buffer {
  return Buffer.concat([...entries.map(craftEntry), ...(options.end === false ? [] : [Buffer.alloc(1024)])])
}

export function paxOf(fields: Readonly<Record<string, string>>): CraftedEntry {
  const content = Object.entries(fields)
    .map(([key, value]) => {
      const rest = ` ${key}=${value}\n`
      const length = [1, 2, 3, 4, 5].map((digits) => Buffer.byteLength(rest) + digits).find((each) => String(each).length + Buffer.byteLength(rest) === each)
      return `${length ?? 0}${rest}`
    })
    .join('')
  return { name: 'pax', type: 'x', content }
}

function craftEntry({ name, type = '0', content = '', target = '', mode = 0o644, size }: CraftedEntry): Buffer {
  const bytes = Buffer.from(content)
  const block = Buffer.alloc(512)
  Buffer.from(name).copy(block, 0, 0, 100)
  block.write(`${mode.toString(8).padStart(7, '0')}\0`, 100)
  block.write('0000000\0'.repeat(2), 108)
  block.write(`${(size ?? bytes.length).toString(8).padStart(11, '0')}\0`, 124)
  block.write('14000000000\0', 136)
  block.write('        ', 148)
  block.write(type, 156)
  block.write(target, 157, 100)
  block.write('ustar\x0000', 257, 'latin1')
  const sum = block.reduce((total, byte) => total + byte, 0)
  block.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148)
  return Buffer.concat([block, bytes, Buffer.alloc((512 - (bytes.length % 512)) % 512)])
}

/** In pieces of this many bytes. */
export async function* inPieces(bytes: Buffer, length = 1000): AsyncGenerator<Uint8Array, void, undefined> {
  for (let at = 0; at < bytes.length; at += length) yield Promise.resolve(bytes.subarray(at, at + length))
}
