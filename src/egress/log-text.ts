const most = { host: 255, path: 1024, method: 40, reason: 400 } as const

/** What strangers wrote, for logs, headers and terminals: one line, in which nothing acts, and not longer than it may be. */
export function lineOf(text: string, kind: keyof typeof most): string {
  const cut = text.length > most[kind] ? `${text.slice(0, most[kind])}…` : text
  return cut.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/gu, (character) => `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`)
}

/** Queries hold secrets more often than paths do. */
export function pathOf(target: string): string {
  return lineOf(target.split(/[?#]/, 1)[0] ?? '', 'path')
}
