/** What colons divide. One that belongs to a part is written \:, and a backslash before a colon \\. */
export function splitAtColons(text: string): string[] {
  const parts: string[] = []
  let part = ''
  for (const [token] of text.matchAll(/\\[:\\]|[\s\S]/gu)) {
    if (token !== ':') part += token.replace(/^\\(?=.)/, '')
    else {
      parts.push(part)
      part = ''
    }
  }
  return [...parts, part]
}

/** A part as it has to be written between colons. */
export function asPart(text: string): string {
  return text.replace(/[:\\]/g, '\\$&')
}
