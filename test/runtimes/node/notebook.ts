/** Executions one after the other in one context, as in a notebook: each with what it must come to. Over pipes and in a cell they are the same. */
import { expect } from 'vitest'
import type { Executed } from '../kernel.js'

export interface Step {
  readonly source: string
  readonly language?: 'typescript'
  /** Of the main result; undefined when there must be none. */
  readonly text?: string
  readonly json?: unknown
  readonly stdout?: string
  readonly stderr?: string
  /** Name, value, line and column. */
  readonly error?: readonly [name: string, value: string, line?: number, column?: number]
  readonly code?: number
}

export const steps: readonly Step[] = [
  { source: '1 + 1', text: '2' },
  { source: 'let a = 20\nconst b = 22\nvar c = 0' },
  { source: 'a + b + c', text: '42' },
  { source: 'const a = "again"; a', text: "'again'" },
  { source: 'let b\nb' },
  { source: 'function twice(n) { return 2 * n }\nclass Point { constructor(x) { this.x = x } }' },
  { source: 'new Point(twice(4))', text: 'Point { x: 8 }' },
  { source: 'const twice = (n) => n + n + 1\nclass Point { y = 1 }\nnew Point().y + twice(1)', text: '4' },
  { source: 'function user() { return helper() }\nfunction helper() { return "old" }\nuser()', text: "'old'" },
  { source: 'const helper = () => "new"; user()', text: "'new'" },
  { source: 'await Promise.resolve(7)', text: '7' },
  { source: 'const later = await new Promise((resolve) => setTimeout(resolve, 5, "late"))\nlater', text: "'late'" },
  { source: 'for await (const n of [1, Promise.resolve(2)]) console.log(n)', stdout: '1\n2\n' },
  { source: '{ a: 1, list: [1, 2] }', text: '{ a: 1, list: [ 1, 2 ] }', json: { a: 1, list: [1, 2] } },
  { source: '[1, "two", null]', text: "[ 1, 'two', null ]", json: [1, 'two', null] },
  { source: 'const circle = { name: "o" }; circle.self = circle; circle', text: "<ref *1> { name: 'o', self: [Circular *1] }" },
  { source: 'undefined' },
  { source: 'null', text: 'null' },
  { source: '5; const nothing = 1' },
  { source: 'console.log("out", { a: 1 }); console.error("err")', stdout: 'out { a: 1 }\n', stderr: 'err\n' },
  { source: 'process.stdout.write("no end"); process.stderr.write(Buffer.from("bytes"))', text: 'true', stdout: 'no end', stderr: 'bytes' },
  { source: 'const fs = require("fs"); fs.readFileSync("data.txt", "utf8")', text: "'from the folder'" },
  { source: 'require("./local.cjs").name', text: "'local'" },
  { source: 'require("packaged")', text: "'cjs of a package'" },
  {
    source: 'import path, { join as put } from "node:path"\nimport * as os from "os"\nimport "fs"\n[put("a", "b"), path.sep, typeof os.tmpdir]',
    text: "[ 'a/b', '/', 'function' ]",
  },
  { source: 'import value, { named } from "./module.mjs"\n`${value} ${named}`', text: "'default named'" },
  { source: 'import packaged from "packaged"; packaged', text: "'esm of a package'" },
  { source: 'import { name } from "./local.cjs"; name', text: "'local'" },
  { source: '(await import("./module.mjs")).named + named', text: "'namednamed'" },
  { source: 'const settings = require("./settings.json"); settings.depth', text: '3' },
  {
    source: 'import { missing } from "./module.mjs"',
    error: ['SyntaxError', "The requested module './module.mjs' does not provide an export named 'missing'", 1, 1],
  },
  { source: 'const x = 1\n\n  x.y.z', error: ['TypeError', "Cannot read properties of undefined (reading 'z')", 3, 7] },
  { source: 'let ok = 1\nlet = = 2', error: ['SyntaxError', "Unexpected token '='", 2, 7] },
  { source: 'function deep() {\n  throw new RangeError("far")\n}\nif (true) {\n  deep()\n}', error: ['RangeError', 'far', 2, 9] },
  { source: 'await null\n  deep()', error: ['RangeError', 'far', 2, 3] },
  { source: 'throw "text"', error: ['Uncaught', "'text'"] },
  { source: '(function again() { again() })()', error: ['RangeError', 'Maximum call stack size exceeded', 1, expect.any(Number) as unknown as number] },
  { source: 'process.exit(3)', code: 3 },
  { source: 'try { process.exit(4) } catch { console.log("caught") } finally { console.log("finally") }', code: 4 },
  { source: 'await null; process.exit(5)', code: 5 },
  { source: '[a, typeof twice, typeof Point]', text: "[ 'again', 'function', 'function' ]" },
  {
    language: 'typescript',
    source: 'interface Pair<T> { left: T; right: T }\nconst pair: Pair<number> = { left: 1, right: 2 }\npair.left + pair!.right',
    text: '3',
  },
  { language: 'typescript', source: 'enum Color { Red, Green = 5 }\nColor[Color.Green]', text: "'Green'" },
  { language: 'typescript', source: 'class Account { constructor(private readonly owner: string, public sum = 3) {} }\nnew Account("me").sum', text: '3' },
  { language: 'typescript', source: 'namespace Space { export const size = 9 }\nSpace.size', text: '9' },
  { language: 'typescript', source: 'import type { Stats } from "fs"\nimport { sep as separator } from "path"\nseparator as string', text: "'/'" },
  {
    language: 'typescript',
    source: 'type A = string\n\nconst fail = (a: A): never => { throw new Error(a) }\n  fail("typed" as A)',
    error: ['Error', 'typed', 3, 39],
  },
  {
    language: 'typescript',
    source: 'enum Off { A }\n\n\nfunction g(n: number): void {\n  throw new Error("moved")\n}\ng(Off.A)',
    error: ['Error', 'moved', 5, 9],
  },
  { language: 'typescript', source: 'let n: = 5', error: ['SyntaxError', expect.stringContaining('Unexpected token') as unknown as string, 1, 8] },
  { language: 'typescript', source: '@sealed class Marked {}', error: ['SyntaxError', 'Invalid or unexpected token', 1, 1] },
  { source: 'pair.right', text: '2' },
  { source: 'const crypto = require("crypto"); typeof crypto.createHash', text: "'function'" },
  { source: 'import.meta.dirname === process.cwd()', text: 'true' },
]

/** In the folder that it begins in. */
export const files = {
  'data.txt': 'from the folder',
  'local.cjs': 'exports.name = "local"',
  'module.mjs': 'export default "default"; export const named = "named"',
  'settings.json': '{ "depth": 3 }',
  'node_modules/packaged/package.json': '{ "name": "packaged", "exports": { "import": "./index.mjs", "require": "./index.cjs" } }',
  'node_modules/packaged/index.mjs': 'export default "esm of a package"',
  'node_modules/packaged/index.cjs': 'module.exports = "cjs of a package"',
}

function seen({ status, code, error, stdout, stderr, results }: Executed) {
  const main = results.find(({ isMain }) => isMain)
  return {
    status,
    code,
    error: error && [error.name, error.value, error.line, error.column],
    stdout,
    stderr,
    text: main?.data['text/plain'],
    json: main?.data['application/json'],
  }
}

/** Holds what an execution came to against what it must. */
export function check({ text, json, stdout = '', stderr = '', error, code }: Step, executed: Executed): void {
  expect(seen(executed)).toEqual({
    status: error !== undefined ? 'error' : code !== undefined ? 'exit' : 'ok',
    code,
    error: error && [error[0], error[1], error[2], error[3]],
    stdout,
    stderr,
    text,
    json: json ?? (text !== undefined && Array.isArray(executed.results[0]?.data['application/json']) ? expect.anything() : undefined),
  })
}
