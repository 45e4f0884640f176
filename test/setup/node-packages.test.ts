import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'

const { isInstalled } = (await import(new URL('../../scripts/setup/node-packages.mjs', import.meta.url).href)) as {
  isInstalled: (folder: string, extent: 'all' | 'running') => boolean
}
let folder: string

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'glovebox-packages-'))
  const other = { version: '9.9.9', optional: true }
  write('package-lock.json', {
    '': {},
    'node_modules/zod': { version: '4.0.0' },
    'node_modules/tool': { version: '1.0.0', dev: true },
    'node_modules/mac': other,
  })
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

function write(path: string, packages: Readonly<Record<string, unknown>>): void {
  mkdirSync(dirname(join(folder, path)), { recursive: true })
  writeFileSync(join(folder, path), JSON.stringify({ packages }))
}

function install(versions: Readonly<Record<string, string>>): void {
  for (const name of Object.keys(versions)) write(`node_modules/${name}/package.json`, {})
  write('node_modules/.package-lock.json', Object.fromEntries(Object.entries(versions).map(([name, version]) => [`node_modules/${name}`, { version }])))
}

describe('what is installed', () => {
  it('is nothing before npm ran, or when it was cut off', () => {
    expect(isInstalled(folder, 'running')).toBe(false)
    write('node_modules/zod/package.json', {})
    expect(isInstalled(folder, 'running')).toBe(false)
  })

  it('is enough for running without the tools, and not for testing', () => {
    install({ zod: '4.0.0' })
    expect([isInstalled(folder, 'running'), isInstalled(folder, 'all')]).toEqual([true, false])
  })

  it('is everything without the packages of other systems', () => {
    install({ zod: '4.0.0', tool: '1.0.0' })
    expect(isInstalled(folder, 'all')).toBe(true)
  })

  it('is not enough in another version, or when a folder was removed', () => {
    install({ zod: '3.0.0', tool: '1.0.0' })
    expect(isInstalled(folder, 'running')).toBe(false)
    install({ zod: '4.0.0', tool: '1.0.0' })
    rmSync(join(folder, 'node_modules/zod'), { recursive: true })
    expect(isInstalled(folder, 'running')).toBe(false)
  })
})
