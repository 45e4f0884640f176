import { execFileSync } from 'node:child_process'
import { copyFileSync, mkdtempSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { readProgramFile } from '../../src/sys/program-file.js'

let place: string

beforeAll(() => {
  place = mkdtempSync(join(tmpdir(), 'gbx-program-'))
  writeFileSync(join(place, 'main.c'), 'int main(void) { return 0; }\n')
  writeFileSync(join(place, 'library.c'), 'int answer(void) { return 42; }\n')
})

afterAll(() => rmSync(place, { recursive: true }))

function compile(name: string, ...flags: string[]): string {
  const path = join(place, name)
  execFileSync('gcc', ['-o', path, ...flags])
  return path
}

const main = (): string => join(place, 'main.c')
const library = (): string => join(place, 'library.c')
const loader = expect.stringMatching(/^\/lib.*\/ld-linux-.*\.so\.\d$/) as string

describe('a program is', () => {
  test('a position-independent one, with its loader', () => {
    expect(readProgramFile(compile('pie', '-pie', '-fPIE', main()))).toEqual({ kind: 'program', interpreter: loader })
  })

  test('one at a fixed address, with its loader', () => {
    expect(readProgramFile(compile('fixed', '-no-pie', main()))).toEqual({ kind: 'program', interpreter: loader })
  })

  test('a static one, which needs none', () => {
    expect(readProgramFile(compile('static', '-static', main()))).toEqual({ kind: 'program', interpreter: undefined })
    expect(readProgramFile(compile('static-pie', '-static-pie', '-fPIE', main()))).toEqual({ kind: 'program', interpreter: undefined })
  })

  test('one without an execute bit, because a loader asks for none', () => {
    const path = compile('bitless', '-pie', '-fPIE', main())
    execFileSync('chmod', ['0644', path])
    expect(readProgramFile(path).kind).toBe('program')
  })

  test('one whose tables lead beyond its end', () => {
    const path = compile('cut', '-pie', '-fPIE', main())
    truncateSync(path, 100)
    expect(readProgramFile(path).kind).toBe('program')
  })
})

describe('no program is', () => {
  test('a library, named or not, also one that prints its version when started', () => {
    expect(readProgramFile(compile('named.so', '-shared', '-fPIC', '-Wl,-soname,libx.so.1', library()))).toEqual({ kind: 'other' })
    expect(readProgramFile(compile('plugin.so', '-shared', '-fPIC', library()))).toEqual({ kind: 'other' })
    const [libc = ''] = /\S*\/libc\.so\.6/.exec(execFileSync('ldd', [process.execPath], { encoding: 'utf8' })) ?? []
    expect(readProgramFile(libc)).toEqual({ kind: 'other' })
  })

  test('an object file, a text, an empty file', () => {
    expect(readProgramFile(compile('object.o', '-c', library()))).toEqual({ kind: 'other' })
    expect(readProgramFile(main())).toEqual({ kind: 'other' })
    writeFileSync(join(place, 'empty'), '')
    expect(readProgramFile(join(place, 'empty'))).toEqual({ kind: 'other' })
  })
})

describe('a script names its interpreter', () => {
  test.each([
    ['#!/bin/sh\nexit\n', { interpreter: '/bin/sh', argument: '' }],
    ['#! /usr/bin/env python3 \nprint()\n', { interpreter: '/usr/bin/env', argument: 'python3' }],
    ['#!\t/usr/bin/perl -w -T\n', { interpreter: '/usr/bin/perl', argument: '-w -T' }],
    ['#!/bin/sh', { interpreter: '/bin/sh', argument: '' }],
    [`#!/bin/sh ${'x'.repeat(300)}`, { interpreter: '/bin/sh', argument: 'x'.repeat(245) }],
  ])('%j', (text, expected) => {
    const path = join(place, 'script')
    writeFileSync(path, text)
    expect(readProgramFile(path)).toEqual({ kind: 'script', ...expected })
  })

  test('or it is none', () => {
    writeFileSync(join(place, 'script'), '#!\n')
    expect(readProgramFile(join(place, 'script'))).toEqual({ kind: 'other' })
  })
})

test('a file that is not there is told in the words of the system', () => {
  expect(() => readProgramFile(join(place, 'nowhere'))).toThrow(expect.objectContaining({ code: 'ENOENT' }))
  copyFileSync(main(), join(place, 'there'))
  expect(readProgramFile(join(place, 'there'))).toEqual({ kind: 'other' })
})
