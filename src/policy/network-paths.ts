/**
 * Whether the path of a request is one that a rule names. Servers read a path in different ways, so an allowing rule must fit all of them and a blocking
 * one any; a path of which nobody can say where it leads fits no allowing rule and every blocking one.
 */

/** All ways to read it; undefined when it is ambiguous: dot segments in any spelling, escapes of escapes, backslashes, controls. */
function readingsOfPath(path: string): readonly string[] | undefined {
  const [raw = ''] = path.split(/[?#]/, 1)
  if (!/^\/[\x21-\x7e]*$/.test(raw) || raw.includes('\\')) return undefined
  const whole = decode(raw)
  if (whole === undefined || /%(?:2e|2f|5c|25)|[\\\p{Cc}]/iu.test(whole)) return undefined
  // Some servers cut a segment at a semicolon before they look at it.
  if (whole.split('/').some((segment) => /^\.{1,2}(?:;|$)/.test(segment))) return undefined
  const keepingSlashes = decode(raw.replace(/%2f/gi, '%252f'))
  return keepingSlashes === undefined ? undefined : [whole, keepingSlashes, whole.replace(/\/{2,}/g, '/')]
}

function decode(text: string): string | undefined {
  try {
    return decodeURIComponent(text)
  } catch {
    return undefined
  }
}

function fits(path: string, pattern: string): boolean {
  return pattern.endsWith('*') ? path.startsWith(pattern.slice(0, -1)) : path === pattern
}

export function isPathAllowed(path: string, patterns: readonly string[]): boolean {
  const readings = readingsOfPath(path)
  return readings !== undefined && patterns.some((pattern) => readings.every((reading) => fits(reading, pattern)))
}

/** Without regard to capitals, which some servers have none for. */
export function isPathBlocked(path: string, patterns: readonly string[]): boolean {
  const readings = readingsOfPath(path)
  if (readings === undefined) return true
  return patterns.some((pattern) => readings.some((reading) => fits(reading.toLowerCase(), pattern.toLowerCase())))
}
