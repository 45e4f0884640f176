// What esbuild makes of src: the library as ES modules that share their parts, and the CLI as one CommonJS file with a small one that starts it. See docs/decisions/0015-bundles.md.
import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative, resolve, sep } from 'node:path'
import { fileURLToPath } from 'node:url'
import { lateHelpers, withLateImports } from './late-imports.mjs'
import { buildPackages } from './runtimes.mjs'

const root = fileURLToPath(new URL('..', import.meta.url))
const source = join(root, 'src')
const target = join(root, 'dist')

/** Found beside us at run time: what holds programs of a machine, or asks for packages by names of its own while it runs. */
const leftOutside = ['@modelcontextprotocol/*', '@opentelemetry/*', 'libsql', 'ws']

/** What is imported of the library by its users, and by the benchmarks of this repository. */
const libraryEntries = ['index.ts', 'compose.ts', 'bench/index.ts', 'conformance/index.ts', 'channel/index.ts', 'drivers/fake/driver.ts']

/** Stands for dist, as seen from the file that a module came to lie in. */
const distMark = '@dist/'

/** @typedef {Map<string, Uint8Array>} Outputs by path, relative to dist */

/** @type {import('esbuild').BuildOptions} */
const common = {
  bundle: true,
  outbase: source,
  outdir: target,
  absWorkingDir: root,
  tsconfig: join(root, 'tsconfig.json'),
  nodePaths: [join(root, 'build/toolchain/node_modules')],
  platform: 'node',
  target: 'node20.19',
  legalComments: 'none',
  external: leftOutside,
  logLevel: 'silent',
  write: false,
}

/**
 * Modules find files of the package by their own place, which is not where a bundle has them: each is told the place it would have without one.
 * @param {string} here an expression for the URL of the file that is run @returns {import('esbuild').Plugin}
 */
function ownPlaces(here) {
  return {
    name: 'own places',
    setup: (build) => {
      build.onLoad({ filter: /\.ts$/ }, ({ path }) => (path.startsWith(source + sep) ? { contents: placed(path, here), loader: 'ts' } : undefined))
    },
  }
}

/** @param {string} path @param {string} here */
function placed(path, here) {
  const place = distMark + relative(source, path).replace(/\.ts$/, '.js')
  return readFileSync(path, 'utf8').replaceAll('import.meta.url', `new URL('${place}', ${here}).href`)
}

/** @param {import('esbuild').BuildOptions} options @returns {Promise<Outputs>} */
async function build(options) {
  const esbuild = /** @type {import('esbuild')} */ (buildPackages('esbuild'))
  const { outputFiles = [] } = await esbuild.build({ ...common, ...options })
  return new Map(
    outputFiles.map(({ path, text }) => {
      const place = relative(target, path)
      const up = '../'.repeat(place.split(sep).length - 1) || './'
      return [place, Buffer.from(text.replaceAll(distMark, up))]
    }),
  )
}

/** @returns {Promise<Outputs>} */
export function makeLibrary() {
  return build({
    entryPoints: libraryEntries.map((path) => join(source, path)),
    chunkNames: 'parts/[name]-[hash]',
    format: 'esm',
    splitting: true,
    charset: 'utf8',
    plugins: [ownPlaces('import.meta.url')],
  })
}

/** In words that every Node understands: what follows is for newer ones. */
const needsNode = `(function (version) {
  if (version[0] > 20 || (version[0] === 20 && version[1] >= 19)) return;
  process.stderr.write('glovebox: needs Node.js 20.19 or newer, and found ' + process.version + '\\nhint: https://nodejs.org/en/download\\n');
  process.exit(125);
})(process.version.slice(1).split('.').map(Number));`

/** The name in scope loads all that Node has to measure with, which takes longer than a command has to wait for anything. Only differences of its times are used. */
const clock = 'var performance={now:()=>Number(process.hrtime.bigint())/1e6};'

/** For a file that Node runs as CommonJS. */
const hereInCommonJs = "require('node:url').pathToFileURL(__filename)"

/** @type {import('esbuild').BuildOptions} */
const commandOptions = {
  format: 'cjs',
  // Names stay: they are in stack traces. ASCII, so that it is read and scanned as bytes.
  minifySyntax: true,
  minifyWhitespace: true,
  charset: 'ascii',
}

/** All modules of src, by path, as they are bundled into the program. @returns {Promise<Map<string, string>>} */
async function lateModules() {
  const paths = readdirSync(source, { recursive: true, encoding: 'utf8' }).filter((path) => path.endsWith('.ts') && !path.endsWith('.d.ts'))
  const modules = paths.map(async (path) => /** @type {const} */ ([path, await withLateImports(placed(join(source, path), hereInCommonJs))]))
  return new Map(await Promise.all(modules))
}

/** What the modules use of zod, as one module: what is asked for as a whole is otherwise taken as a whole. @param {Map<string, string>} modules */
async function usedOfZod(modules) {
  const names = new Set([...modules.values()].flatMap((code) => [...code.matchAll(/\bz\.of\.(\w+)/g)].map(([, name]) => name)))
  // Commands parse each thing but once or twice: compiling a parser for it would take longer than parsing does.
  const contents = `import { config } from 'zod'; config({ jitless: true }); export { ${[...names].sort().join(', ')} } from 'zod'`
  const outputs = await build({ ...commandOptions, stdin: { contents, resolveDir: source } })
  return Buffer.from([...outputs.values()][0] ?? []).toString('utf8')
}

/** @returns {Promise<import('esbuild').Plugin>} */
async function lateImports() {
  const modules = await lateModules()
  const zod = await usedOfZod(modules)
  return {
    name: 'late imports',
    setup: (build) => {
      // In a namespace of their own, where nothing takes them for what they were.
      build.onResolve({ filter: /^[./].*\.[jt]s$/ }, ({ path, resolveDir }) => {
        const module = relative(source, resolve(resolveDir, path)).replace(/\.js$/, '.ts')
        return modules.has(module) ? { path: module, namespace: 'src' } : undefined
      })
      build.onLoad({ filter: /./, namespace: 'src' }, ({ path }) => ({
        contents: modules.get(path) ?? '',
        loader: 'js',
        resolveDir: dirname(join(source, path)),
      }))
      build.onResolve({ filter: /^zod$/ }, ({ path }) => ({ path, namespace: 'used' }))
      build.onLoad({ filter: /./, namespace: 'used' }, () => ({ contents: zod, loader: 'js' }))
    },
  }
}

/** @returns {Promise<Outputs>} */
export async function makeCli() {
  const main = join(source, 'cli/main.ts')
  const start = join(source, 'start.ts')
  const outputs = await Promise.all([
    build({ ...commandOptions, entryPoints: { 'cli/program': main }, plugins: [await lateImports()], banner: { js: clock + lateHelpers } }),
    build({
      ...commandOptions,
      entryPoints: { 'cli/main': start },
      plugins: [ownPlaces(hereInCommonJs)],
      target: 'node12',
      banner: { js: `#!/usr/bin/env node\n${needsNode}` },
    }),
  ])
  return new Map([...outputs.flatMap((each) => [...each]), ['cli/package.json', Buffer.from('{ "type": "commonjs" }\n')]])
}
