import { randomInt } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'

/** A sleep that is found from outside by its argument, and ends by itself if a test fails to end it. */
export function markedSleep(): { readonly marker: string; readonly command: string } {
  const marker = `30.${randomInt(2 ** 47)}7`
  return { marker, command: `sleep ${marker}` }
}

export function isRunning(marker: string): boolean {
  return pids().some((pid) => {
    const line = read(`/proc/${pid}/cmdline`).split('\0')
    return line[0] === 'sleep' && line[1] === marker
  })
}

export function childrenOf(parent: number): number[] {
  return pids().filter((pid) => Number(/\) \S (\d+)/.exec(read(`/proc/${pid}/stat`))?.[1]) === parent)
}

export async function waitUntil(isSo: () => boolean): Promise<void> {
  for (const end = performance.now() + 60_000; performance.now() < end; ) {
    if (isSo()) return
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
  throw new Error(`did not come about within a minute: ${String(isSo)}`)
}

/** What was printed before may still be on its way: resolves once it has stayed the same for many looks. */
export async function settled(count: () => number): Promise<number> {
  for (let [last, same] = [count(), 0]; same < 20; same = count() === last ? same + 1 : 0) {
    last = count()
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
  return count()
}

function pids(): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
}

function read(path: string): string {
  try {
    return readFileSync(path, 'latin1')
  } catch {
    return ''
  }
}
