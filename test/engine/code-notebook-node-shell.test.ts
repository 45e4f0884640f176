// The notebooks of JavaScript, TypeScript and the shell, in a real cell, through the engine: what they give there is what they give over pipes.
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createPlatform } from '../../src/compose.js'
import type { ContextInfo } from '../../src/contract/code.js'
import type { Platform } from '../../src/contract/platform.js'
import * as node from '../runtimes/node/notebook.js'
import * as shell from '../runtimes/shell/notebook.js'
import { executeInCell } from './code-in-cell.js'

const folder = '/workspace'
const timeout = 180_000

let platform: Platform
let id: string
let whyNot: { readonly javascript?: string | undefined; readonly bash?: string | undefined } = {}
let contexts: { readonly javascript?: ContextInfo; readonly bash?: ContextInfo } = {}

beforeAll(async () => {
  platform = createPlatform()
  const [probe] = await platform.probe()
  if (probe?.available !== true) {
    const why = `no cell can be built here: ${probe?.obstacles[0]?.why ?? 'there is no driver'}`
    whyNot = { javascript: why, bash: why }
    return
  }
  const info = await platform.create({ template: 'host', limits: { time: '10m' }, lifetime: '1h' })
  id = info.id
  const { javascript, bash } = await platform.code.languages(id)
  whyNot = { javascript: javascript.available ? undefined : javascript.why, bash: bash.available ? undefined : bash.why }
  for (const [name, text] of Object.entries(node.files)) await platform.files.of(id).write(`${folder}/${name}`, pieces(text))
  contexts = {
    ...(javascript.available && { javascript: await platform.code.createContext(id, { language: 'javascript', cwd: folder }) }),
    ...(bash.available && { bash: await platform.code.createContext(id, { language: 'bash', cwd: folder }) }),
  }
}, timeout)
afterAll(() => platform[Symbol.asyncDispose]())

async function* pieces(text: string): AsyncGenerator<Uint8Array, void, undefined> {
  yield Buffer.from(text)
}

function inContext(context: ContextInfo | undefined): { context?: string } {
  return context ? { context: context.id } : {}
}

describe('the notebook of JavaScript and TypeScript, in a cell', () => {
  for (const [index, step] of node.steps.entries()) {
    test(`execution ${index + 1}`, { timeout }, async ({ skip }) => {
      if (whyNot.javascript !== undefined) skip(whyNot.javascript)
      const executed = await executeInCell(platform, id, { code: step.source, language: step.language ?? 'javascript', ...inContext(contexts.javascript) })
      expect(executed.number).toBe(index + 1)
      node.check(step, executed)
    })
  }

  test('what is printed on both streams and displayed comes in its order', { timeout }, async ({ skip }) => {
    if (whyNot.javascript !== undefined) skip(whyNot.javascript)
    const code = 'for (let n = 0; n < 5; n++) { console.log("o" + n); console.error("e" + n); display(n) }'
    const { order } = await executeInCell(platform, id, { code, language: 'javascript', ...inContext(contexts.javascript) })
    expect(order).toEqual(Array.from({ length: 5 }, (_, n) => [`stdout o${n}\n`, `stderr e${n}\n`, 'result']).flat())
  })
})

describe('the notebook of the shell, in a cell', () => {
  for (const [index, step] of shell.stepsIn(folder).entries()) {
    test(`execution ${index + 1}`, { timeout }, async ({ skip }) => {
      if (whyNot.bash !== undefined) skip(whyNot.bash)
      const executed = await executeInCell(platform, id, { code: step.source, language: 'bash', ...inContext(contexts.bash) })
      expect(executed.number).toBe(index + 1)
      shell.check(step, executed)
    })
  }
})
