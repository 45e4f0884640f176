import type { Command } from '../../contract/run.js'
import type { SpecInput } from '../../contract/spec.js'
import { ensure, ensureExited, ensureRejects } from '../check.js'
import { withSandbox } from '../guest.js'
import { ensureLeavesNothing } from '../leftovers.js'
import type { Case, SubjectRunOptions } from '../subject.js'

/** A spec no type allows, and the field its error has to name. */
interface BadSpec {
  readonly id: string
  readonly what: string
  readonly field: string
  readonly spec: unknown
}

const badSpecs: readonly BadSpec[] = [
  { id: 'unknown-key', what: 'an unknown key', field: 'memroy', spec: { memroy: '1g' } },
  { id: 'unknown-limit', what: 'an unknown limit', field: 'ram', spec: { limits: { ram: '1g' } } },
  { id: 'wrong-type', what: 'a list where a text belongs', field: 'template', spec: { template: ['python'] } },
  { id: 'wrong-env-type', what: 'a number as a variable', field: 'env', spec: { env: { A: 7 } } },
  { id: 'negative-memory', what: 'a negative size', field: 'memory', spec: { limits: { memory: -1 } } },
  { id: 'absurd-disk', what: 'an absurd size', field: 'disk', spec: { limits: { disk: '9999999t' } } },
  { id: 'fractional-bytes', what: 'half a byte', field: 'memory', spec: { limits: { memory: 4_194_304.5 } } },
  { id: 'not-a-size', what: 'a size that is none', field: 'memory', spec: { limits: { memory: 'plenty' } } },
  { id: 'nan-cpus', what: 'NaN processors', field: 'cpus', spec: { limits: { cpus: Number.NaN } } },
  { id: 'infinite-memory', what: 'endless memory', field: 'memory', spec: { limits: { memory: Number.POSITIVE_INFINITY } } },
  { id: 'zero-processes', what: 'no processes at all', field: 'processes', spec: { limits: { processes: 0 } } },
  { id: 'negative-time', what: 'a negative time', field: 'time', spec: { limits: { time: -5 } } },
  { id: 'absurd-lifetime', what: 'a lifetime of a century', field: 'lifetime', spec: { lifetime: '36500d' } },
  { id: 'nul-env', what: 'a NUL in a variable', field: 'env', spec: { env: { A: 'a\0b' } } },
  { id: 'nul-env-name', what: 'a NUL in the name of a variable', field: 'env', spec: { env: { 'A\0B': 'x' } } },
  { id: 'equals-env-name', what: 'an equals sign in the name of a variable', field: 'env', spec: { env: { 'A=B': 'x' } } },
  { id: 'prototype-env', what: 'a variable that would set a prototype', field: 'env.__proto__', spec: JSON.parse('{"env":{"__proto__":"x"}}') },
  { id: 'map-env', what: 'a Map of variables', field: 'env', spec: { env: new Map([['A', 'x']]) } },
  { id: 'nul-cwd', what: 'a NUL in a path', field: 'cwd', spec: { cwd: '/tmp\0/x' } },
  { id: 'relative-cwd', what: 'a relative working folder', field: 'cwd', spec: { cwd: 'tmp' } },
  { id: 'unknown-user', what: 'an unknown user', field: 'user', spec: { user: 'admin' } },
  { id: 'template-path', what: 'a path as a template', field: 'template', spec: { template: '../../etc' } },
  { id: 'control-name', what: 'a name with control characters', field: 'name', spec: { name: 'a\nb' } },
]

/** A run no type allows, and the field its error has to name. */
interface BadRun {
  readonly id: string
  readonly what: string
  readonly field: string
  readonly command?: unknown
  readonly options?: unknown
}

const badRuns: readonly BadRun[] = [
  { id: 'empty-argv', what: 'an empty list as a command', field: 'command', command: [] },
  { id: 'empty-command', what: 'an empty text as a command', field: 'command', command: '' },
  { id: 'empty-program', what: 'a program without a name', field: 'command', command: ['', 'a'] },
  { id: 'number-command', what: 'a number as a command', field: 'command', command: 7 },
  { id: 'number-argument', what: 'a number among the arguments', field: 'command', command: ['echo', 7] },
  { id: 'nul-argv', what: 'a NUL in an argument', field: 'command', command: ['echo', 'a\0b'] },
  { id: 'nul-shell', what: 'a NUL in a line for the shell', field: 'command', command: 'echo a\0b' },
  { id: 'nul-run-env', what: 'a NUL in a variable of a run', field: 'env', options: { env: { A: '\0' } } },
  { id: 'prototype-run-env', what: 'a variable of a run that would set a prototype', field: 'env.__proto__', options: JSON.parse('{"env":{"__proto__":"x"}}') },
  { id: 'nul-run-cwd', what: 'a NUL in the folder of a run', field: 'cwd', options: { cwd: '/\0' } },
  { id: 'relative-run-cwd', what: 'a relative folder for a run', field: 'cwd', options: { cwd: 'x' } },
  { id: 'missing-cwd', what: 'a folder that does not exist', field: 'cwd', options: { cwd: '/no/such/folder' } },
  { id: 'negative-timeout', what: 'a negative timeout', field: 'timeout', options: { timeout: -1 } },
  { id: 'not-a-timeout', what: 'a timeout that is none', field: 'timeout', options: { timeout: 'soon' } },
  { id: 'unknown-run-user', what: 'an unknown user for a run', field: 'user', options: { user: 'nobody' } },
  { id: 'long-argument', what: 'an argument longer than a kernel takes', field: 'command', command: ['echo', 'a'.repeat(200_000)] },
]

function badSpecCase({ id, what, field, spec }: BadSpec): Case {
  return {
    id: `bad-input/${id}`,
    name: `${what} is refused by the name of its field, and nothing starts`,
    needs: ['engine'],
    run: async (subject) => {
      const before = (await subject.host.snapshot()).processes.filter(({ ofEngine }) => ofEngine).length
      const error = await ensureRejects(subject.open(spec as SpecInput), ['invalid'])
      ensure(error.message.includes(field), `the message must name ${field}`, error)
      const after = (await subject.host.snapshot()).processes.filter(({ ofEngine }) => ofEngine).length
      ensure(after <= before, 'nothing may start', `${after - before} processes more`)
      return error.message
    },
  }
}

function badRunCase({ id, what, field, command = ['true'], options = {} }: BadRun): Case {
  return {
    id: `bad-input/${id}`,
    name: `${what} is refused by the name of its field, and the sandbox goes on`,
    needs: ['engine'],
    run: (subject) =>
      withSandbox(subject, async (sandbox) => {
        const run = async () => sandbox.run(command as Command, options as SubjectRunOptions)
        const error = await ensureRejects(run(), ['invalid'])
        ensure(error.message.includes(field), `the message must name ${field}`, error)
        ensureExited(await sandbox.run(['true']))
        return error.message
      }),
  }
}

export const badInputCases: readonly Case[] = [
  ...badSpecs.map(badSpecCase),
  ...badRuns.map(badRunCase),
  {
    id: 'bad-input/leaves-nothing',
    name: 'what is refused leaves nothing behind',
    needs: ['engine'],
    run: async (subject) => {
      await ensureLeavesNothing(subject, async () => {
        for (const { spec } of badSpecs) await ensureRejects(subject.open(spec as SpecInput), ['invalid'])
        await ensureRejects(subject.open({ template: 'no-such-template-7' }), ['invalid', 'not-found', 'unsupported'])
      })
      return `${badSpecs.length + 1} refusals, nothing left`
    },
  },
]
