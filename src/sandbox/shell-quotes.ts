/** Where in a command of the shell's a text ends. Only among words can a value be made a word by quoting it. */
export type ShellPlace =
  | { readonly kind: 'words'; readonly isWordStart: boolean }
  | { readonly kind: 'quotes'; readonly mark: string; readonly where: string }
  | { readonly kind: 'comment'; readonly where: string }
  | { readonly kind: 'lost'; readonly where: string }

export const shellStart: ShellPlace = { kind: 'words', isWordStart: true }
const withinWord: ShellPlace = { kind: 'words', isWordStart: false }
/** What follows a value goes on with its word. */
export const afterValue = withinWord

/**
 * Walks over quotes, backslashes and comments as every shell of the POSIX family does. It knows less than a shell: where it cannot tell, as in a command
 * inside double quotes or after a here-document has begun, no value may stand.
 */
export function placeAfter(before: ShellPlace, text: string): ShellPlace {
  let place = before
  for (let at = 0; at < text.length && place.kind !== 'lost'; at += 1) {
    const character = text[at] ?? ''
    if (place.kind === 'comment') place = character === '\n' ? shellStart : place
    else if (character === '\\' && !(place.kind === 'quotes' && place.mark === "'")) {
      at += 1
      if (place.kind === 'words') place = withinWord
    } else if (place.kind === 'quotes') place = character === place.mark ? withinWord : place
    else place = among(text, at, place)
  }
  return place
}

function among(text: string, at: number, { isWordStart }: { readonly isWordStart: boolean }): ShellPlace {
  const character = text[at] ?? ''
  const next = text[at + 1]
  if (character === "'" || character === '"' || character === '`') return { kind: 'quotes', mark: character, where: 'inside quotes' }
  if (character === '#' && isWordStart) return { kind: 'comment', where: 'in a comment' }
  if (character === '<' && next === '<' && text[at + 2] !== '<' && text[at - 1] !== '<') return { kind: 'lost', where: 'after <<' }
  // Before a value or a quote it is another kind of quoting in some shells.
  if (character === '$' && (next === undefined || next === "'")) return { kind: 'lost', where: 'after $' }
  return /[\s;&|()]/.test(character) ? shellStart : withinWord
}
