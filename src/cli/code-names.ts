/** Names for files that come out of a sandbox: what a guest chose, as far as it can do no harm in a folder of the user's. */
const mostBytes = 120
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is replaced here
const unsafe = /[\u0000-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff<>:"/\\|?*]/gu
const reserved = /^(?:con|prn|aux|nul|com\d|lpt\d)(?:\.|$)/i

/** One name without folders, that is no hidden file, no option, and no device anywhere: `plots_a.png` of `plots/a.png`. */
export function safeName(path: string): string {
  const flat = path
    .normalize('NFC')
    .replace(unsafe, '_')
    .replace(/^[.\-~\s]+/, '_')
    .replace(/[.\s]+$/, '_')
  const named = flat === '' ? 'file' : reserved.test(flat) ? `_${flat}` : flat
  return shortened(named)
}

function shortened(name: string): string {
  if (Buffer.byteLength(name) <= mostBytes) return name
  const { stem, extension } = divided(name)
  const kept = Buffer.byteLength(extension) > 16 ? '' : extension
  let short = stem
  while (Buffer.byteLength(short + kept) > mostBytes) short = Array.from(short).slice(0, -1).join('')
  return short + kept
}

/** `a.tar` with a number is `a-2.tar`. */
export function numbered(name: string, number: number): string {
  if (number === 1) return name
  const { stem, extension } = divided(name)
  return `${stem}-${number}${extension}`
}

function divided(name: string): { readonly stem: string; readonly extension: string } {
  const at = name.lastIndexOf('.')
  return at <= 0 ? { stem: name, extension: '' } : { stem: name.slice(0, at), extension: name.slice(at) }
}
