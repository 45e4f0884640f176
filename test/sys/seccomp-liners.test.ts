// Programs in liners are under the filter of whoever makes liners, which allows what a liner is made with: there the guests' own filter has to refuse it.
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect } from 'vitest'
import { createSeccompCompiler } from '../../src/sys/seccomp.js'
import { ARCH, simulate } from '../../src/sys/filter-simulator.js'
import { testUnless } from '../unless.js'

const isX86 = process.arch === 'x64'
const arch = isX86 ? ARCH.x86_64 : ARCH.aarch64
const definitions = definitionsOf('sys/syscall.h')
const untold = definitions === undefined && 'no C compiler tells the numbers of calls here'
const source = readFileSync(new URL('../../warden/self-filter.c', import.meta.url), 'utf8')

let filter: Uint8Array
let cacheDir: string
beforeAll(async () => {
  cacheDir = mkdtempSync(join(tmpdir(), 'seccomp-liners-'))
  filter = await createSeccompCompiler({ cacheDir }).compileDefault()
})
afterAll(() => rmSync(cacheDir, { recursive: true }))

function definitionsOf(header: string): string | undefined {
  try {
    return execFileSync('cc', ['-E', '-dM', '-include', header, '-x', 'c', '/dev/null'], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] })
  } catch {
    return undefined
  }
}

function numberOf(name: string): number {
  const found = new RegExp(`^#define __NR_${name} (\\d+)$`, 'm').exec(definitions ?? '')?.[1]
  if (found === undefined) throw new Error(`no header tells the number of ${name}`)
  return Number(found)
}

/** The table of the machine's own calls, as the source has it: by name, or by a number with its name beside it. */
function deniedByWarden(): ReadonlyMap<string, number> {
  const text = (start: string, end: string): string => source.slice(source.indexOf(start), source.indexOf(end, source.indexOf(start)))
  const shared = text('#define SINCE_UNIFICATION', '#if defined(__x86_64__)')
  const own = isX86 ? text('NATIVE_DENIED[] =', ';') : ''
  const named = [...`${shared}${own}`.matchAll(/SYS_(\w+)/g)].map(([, name = '']) => [name, numberOf(name)] as const)
  const numbered = [...shared.matchAll(/(\d+) \/\* (\w+) \*\//g)].map(([, number, name = '']) => [name, Number(number)] as const)
  return new Map([...named, ...numbered])
}

describe('the default filter', () => {
  testUnless(untold)('refuses every call that the warden refuses itself, so also those with which liners are made', () => {
    const denied = deniedByWarden()
    expect(denied.size).toBeGreaterThan(40)
    for (const name of ['mount', 'open_tree', 'move_mount', 'setns', 'unshare', 'ptrace']) expect(denied.has(name)).toBe(true)
    const allowed = [...denied].filter(([, number]) => simulate(filter, { arch, number }) === 'allow').map(([name]) => name)
    expect(allowed).toEqual([])
    expect(simulate(filter, { arch, number: numberOf('getpid') })).toBe('allow')
  })

  testUnless(untold)('lets no clone make a namespace, neither one nor all that a liner has', () => {
    const clone = (flags: bigint): string => simulate(filter, { arch, number: numberOf('clone'), args: [flags] })
    const namespaces = [0x20000n, 0x2000000n, 0x4000000n, 0x8000000n, 0x10000000n, 0x20000000n, 0x40000000n]
    const all = namespaces.reduce((sum, flag) => sum | flag)
    expect([...namespaces, all, all & ~0x2000000n].map((flags) => clone(flags | 17n))).not.toContain('allow')
    expect(clone(17n)).toBe('allow')
  })
})
