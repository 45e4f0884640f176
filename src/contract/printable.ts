/** Keys come from strangers and end on terminals: short, and nothing in them acts. */
export function printable(value: unknown): string {
  const text = String(value)
  const shown = text.length > 60 ? `${text.slice(0, 60)}…` : text
  return shown.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, '\uFFFD')
}
