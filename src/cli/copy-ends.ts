/** What `cp` copies from and to. */
import { SandboxError } from '../contract/errors.js'

export type CopyEnd =
  /** Our stdin, or our stdout. */
  | { readonly kind: 'stream' }
  /** Of this machine, as it was typed. */
  | { readonly kind: 'local'; readonly path: string }
  /** Of a sandbox, by any of its names. */
  | { readonly kind: 'sandbox'; readonly sandbox: string; readonly path: string }

export interface Copying {
  readonly from: CopyEnd
  readonly to: CopyEnd
}

const hint = 'glovebox cp --help'

/** Throws SandboxError('invalid') unless at least one of the two is of a sandbox. */
export function parseCopy(from: string, to: string): Copying {
  const copying = { from: parseEnd(from), to: parseEnd(to) }
  if (copying.from.kind !== 'sandbox' && copying.to.kind !== 'sandbox') {
    throw new SandboxError('invalid', `neither '${from.slice(0, 80)}' nor '${to.slice(0, 80)}' is of a sandbox; one of them is to be SANDBOX:PATH`, { hint })
  }
  return copying
}

/** A colon before any slash makes it a sandbox's: a local name with a colon is written ./a:b, and a sandbox whose name has one is named by its id. */
function parseEnd(text: string): CopyEnd {
  if (text === '') throw new SandboxError('invalid', 'a path must not be empty', { hint })
  if (text === '-') return { kind: 'stream' }
  const colon = text.indexOf(':')
  const slash = text.indexOf('/')
  if (colon === -1 || (slash !== -1 && slash < colon)) return { kind: 'local', path: text }
  const [sandbox, path] = [text.slice(0, colon), text.slice(colon + 1)]
  if (sandbox === '')
    throw new SandboxError('invalid', `'${text.slice(0, 80)}' names no sandbox; a local path with a colon is written ./${text.slice(0, 40)}`, { hint })
  return { kind: 'sandbox', sandbox, path: path === '' ? '.' : path }
}

/** The last part of a path, if that is a name. */
export function lastName(path: string): string | undefined {
  const name = path.replace(/\/+$/, '').split('/').at(-1) ?? ''
  return name === '' || name === '.' || name === '..' || name === '~' ? undefined : name
}

/** `a/` and `a/.` are what is in the folder a, rather than the folder. */
export function meansContents(path: string): boolean {
  return path === '.' || path === '..' || /\/(?:\.{1,2}\/*)?$/.test(path)
}
