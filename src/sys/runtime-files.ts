import { readFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import * as z from 'zod'
import { languageSchema } from '../contract/code.js'
import { SandboxError } from '../contract/errors.js'
import { nativeProgram } from './native.js'

const kernelSchema = z.strictObject({
  interpreters: z.array(z.string()).min(1),
  argv: z.array(z.string()),
  env: z.record(z.string(), z.string()),
  load: z.string(),
})

const indexSchema = z.strictObject({
  kernels: z.record(z.string(), kernelSchema),
  languages: z.partialRecord(languageSchema, z.strictObject({ kernel: z.string(), options: z.array(z.string()).default([]), load: z.string().optional() })),
})

/** The kernels that come with the package, as their index describes them. */
export type RuntimeIndex = z.output<typeof indexSchema>

export interface RuntimeFiles {
  readonly index: RuntimeIndex
  /** Read when it is first wanted. */
  read(file: string): Promise<Uint8Array>
  /** What a zygote of Python is started with. */
  zygote(): Promise<{ readonly bootstrap: string; readonly library: Uint8Array }>
  /** What a Python that is begun ahead is sent. */
  begun(): Promise<Uint8Array>
}

/** In a checkout the source runs beside what was built from it, as with the native programs. */
const folders = ['../runtimes/', '../../dist/runtimes/']

export function runtimeFiles(): RuntimeFiles {
  const found = folders.map((folder) => new URL(folder, import.meta.url)).find((folder) => textIn(folder) !== undefined)
  if (found === undefined)
    throw new SandboxError('internal', 'the kernels of the code interpreter are not where they should be', { hint: 'node scripts/build.mjs' })
  const read = (file: string): Promise<Buffer> => readFile(fileURLToPath(new URL(file, found)))
  const zygote = async (): Promise<{ bootstrap: string; library: Buffer }> => ({
    bootstrap: (await read('python/zygote.py')).toString(),
    library: await readFile(nativeProgram('zygote.so')),
  })
  return { index: indexSchema.parse(JSON.parse(textIn(found) ?? '')), read, zygote, begun: () => read('python/begun.py') }
}

function textIn(folder: URL): string | undefined {
  try {
    return readFileSync(new URL('index.json', folder), 'utf8')
  } catch {
    return undefined
  }
}
