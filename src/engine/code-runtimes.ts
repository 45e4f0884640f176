import { type Language, languages } from '../contract/code.js'
import { SandboxError } from '../contract/errors.js'
import type { Runtime } from '../interpreter/index.js'
import type { ZygoteFiles } from './zygote.js'

/** What a package of kernels says of itself, and its files. */
export interface RuntimeSource {
  readonly index: {
    readonly kernels: Readonly<Record<string, Pick<Runtime, 'interpreters' | 'argv' | 'env'> & { readonly load: string }>>
    readonly languages: Readonly<
      Partial<Record<Language, { readonly kernel: string; readonly options: readonly string[]; readonly load?: string | undefined }>>
    >
  }
  readonly read: (file: string) => Promise<Uint8Array>
  /** What a zygote of Python is started with; undefined where there is none. */
  readonly zygote?: () => Promise<ZygoteFiles>
  /** What a Python that is begun ahead is sent; undefined where none is. */
  readonly begun?: () => Promise<Uint8Array>
}

/** The kernels that an engine has, each file read once, when it is first wanted. */
export class Runtimes {
  readonly #source: () => RuntimeSource
  #all: readonly Runtime[] | undefined

  constructor(source: () => RuntimeSource) {
    this.#source = source
  }

  get all(): readonly Runtime[] {
    this.#all ??= runtimesIn(this.#source())
    return this.#all
  }

  of(language: Language): Runtime {
    const found = this.all.find((runtime) => runtime.languages.some((each) => each.language === language))
    if (!found) throw new SandboxError('unsupported', `language: there is no kernel for ${language} here`)
    return found
  }
}

function runtimesIn({ index, read }: RuntimeSource): Runtime[] {
  return Object.entries(index.kernels).map(([name, { load, ...kernel }]) => ({
    name,
    ...kernel,
    load: once(() => read(load)),
    languages: languages.flatMap((language) => {
      const spoken = index.languages[language]
      if (spoken?.kernel !== name) return []
      const further = spoken.load
      return [{ language, options: Object.fromEntries(spoken.options.map(pairOf)), ...(further !== undefined && { load: once(() => read(further)) }) }]
    }),
  }))
}

function pairOf(option: string): [name: string, value: string] {
  const at = option.indexOf('=')
  return [option.slice(0, at), option.slice(at + 1)]
}

function once<T>(act: () => Promise<T>): () => Promise<T> {
  let acting: Promise<T> | undefined
  return () => {
    acting ??= act()
    acting.catch(() => {
      acting = undefined
    })
    return acting
  }
}
