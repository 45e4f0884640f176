import type { Language } from '../contract/code.js'

/** How the contexts of a family of languages are interpreted. */
export interface Runtime {
  readonly name: string
  /** What its contexts speak; they are called by the first. */
  readonly languages: readonly SpokenLanguage[]
  /** Programs that interpret it, the first that is there is taken; a name without `/` is looked for in PATH. */
  readonly interpreters: readonly string[]
  /** Makes the program take a kernel's source and become that kernel. */
  readonly argv: readonly string[]
  readonly env: Readonly<Record<string, string>>
  /** The kernel's source. */
  load(): Promise<Uint8Array>
}

export interface SpokenLanguage {
  readonly language: Language
  /** Told with each execution in it. */
  readonly options: Readonly<Record<string, string>>
  /** What the kernel has to be given besides, before the first execution in it. */
  readonly load?: () => Promise<Uint8Array>
}

export function speaks(runtime: Runtime, language: Language): SpokenLanguage | undefined {
  return runtime.languages.find((each) => each.language === language)
}
