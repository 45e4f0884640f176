import { spawnSync } from 'node:child_process'
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'

const root = join(import.meta.dirname, '../..')
/** Without coverage: a compiler that gives that need not be there. */
const fuzzIn = (folder: string) =>
  spawnSync(process.execPath, [join(folder, 'scripts/fuzz.mjs'), '--blind', '--only', 'warden-frames', '--seconds', '2', '--seed', '1'], { encoding: 'utf8' })

test('the fuzzer finds a planted over-read, shows its input and fails; without it, it passes', { timeout: 60_000 }, () => {
  const folder = mkdtempSync(join(tmpdir(), 'warden-fuzz-'))
  try {
    for (const part of ['warden', 'scripts/fuzz.mjs', 'scripts/fuzz']) cpSync(join(root, part), join(folder, part), { recursive: true })
    const clean = fuzzIn(folder)
    expect(clean.stdout).toMatch(/seed 1,[^]*\nwarden-frames +C, blind +[1-9]\d* .* 0\n/)
    expect(clean.status).toBe(0)
    const parser = join(folder, 'warden/frame.c')
    const source = readFileSync(parser, 'utf8')
    const broken = source.replace('length - FRAME_HEADER < frame->length', 'length - FRAME_HEADER + 1 < frame->length')
    expect(broken).not.toBe(source)
    writeFileSync(parser, broken)
    const found = fuzzIn(folder)
    expect(found.status).toBe(1)
    expect(found.stdout).toMatch(/FOUND with an input of kind 0:\n[0-9a-f]+\n/)
  } finally {
    rmSync(folder, { recursive: true })
  }
})
