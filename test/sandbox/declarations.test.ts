import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import ts from 'typescript'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'

const root = fileURLToPath(new URL('../..', import.meta.url))
let place: string

const consumer = `
import { createPlatform, type Driver, type RunResult, Sandbox, SandboxError } from 'glovebox'
export async function use(signal: AbortSignal, drivers: readonly Driver[]): Promise<RunResult> {
  await using platform = createPlatform({ drivers })
  await using sandbox = await Sandbox.create({ platform, signal, limits: { memory: '64m', time: 5 }, env: { A: 'x' } })
  const process = await sandbox.spawn(['cat'])
  await process.signal('SIGTERM')
  await process.stdin.end('x')
  for await (const bytes of process.stdout) bytes satisfies Uint8Array
  for await (const event of sandbox.run('ls')) if (event.type === 'exit') event.exitCode satisfies number | undefined
  // @ts-expect-error A field that there is not.
  await Sandbox.create({ memroy: 1 }).catch((error: unknown) => (error instanceof SandboxError ? error.hint : undefined))
  // @ts-expect-error A signal is written with its prefix.
  await process.signal('TERM')
  return sandbox.run('true', { onOutputLimit: 'truncate' })
}
`

function configOf(options: object): ts.CompilerOptions {
  const { options: parsed, errors } = ts.convertCompilerOptionsFromJson(options, place)
  if (errors.length > 0) throw new Error(problemsOf(errors).join('\n'))
  return parsed
}

function problemsOf(diagnostics: readonly ts.Diagnostic[]): string[] {
  return diagnostics.map(({ file, messageText }) => `${file?.fileName ?? ''}: ${ts.flattenDiagnosticMessageText(messageText, ' ')}`)
}

beforeAll(() => {
  place = mkdtempSync(join(tmpdir(), 'gbx-types-'))
  const installed = join(place, 'node_modules/glovebox')
  mkdirSync(installed, { recursive: true })
  writeFileSync(join(installed, 'package.json'), readFileSync(join(root, 'package.json')))
  symlinkSync(join(root, 'node_modules/zod'), join(place, 'node_modules/zod'))
  const { config } = ts.readConfigFile(join(root, 'tsconfig.build.json'), (path) => ts.sys.readFile(path)) as { config: object }
  const { options } = ts.parseJsonConfigFileContent({ ...config, include: ['src/index.ts'] }, ts.sys, root)
  const program = ts.createProgram([join(root, 'src/index.ts')], { ...options, outDir: join(installed, 'dist') })
  const { emitSkipped } = program.emit()
  if (emitSkipped) throw new Error('no declarations were written')
  writeFileSync(join(place, 'consumer.mts'), consumer)
}, 600_000)

afterAll(() => rmSync(place, { recursive: true }))

describe("the package's types, read whole and strictly, serve a consumer", () => {
  const strict = { strict: true, exactOptionalPropertyTypes: true, skipLibCheck: false, noEmit: true, module: 'nodenext', target: 'es2022', types: [] }

  test.each([
    ['without the types of Node', {}],
    ['without the types of Node, with the libraries of ES2022 and the web', { lib: ['es2022', 'dom'] }],
    ['with the types of Node, without the web', { lib: ['es2022'], types: ['node'], typeRoots: [join(root, 'node_modules/@types')] }],
  ])(
    '%s',
    (_, difference) => {
      const program = ts.createProgram([join(place, 'consumer.mts')], configOf({ ...strict, ...difference }))
      expect(problemsOf(ts.getPreEmitDiagnostics(program))).toEqual([])
    },
    600_000,
  )

  test('and name nothing of Node themselves', () => {
    const dist = join(place, 'node_modules/glovebox/dist')
    const program = ts.createProgram([join(dist, 'index.d.ts')], configOf(strict))
    const reached = program.getSourceFiles().filter(({ fileName }) => fileName.startsWith(ts.sys.realpath?.(dist) ?? dist))
    expect(reached.length).toBeGreaterThan(10)
    expect(reached.filter(({ text }) => /\bNodeJS\.|['"]node:|\bBuffer\b/.test(text)).map(({ fileName }) => fileName)).toEqual([])
    expect(readdirSync(dist)).toContain('index.d.ts')
  })
})
