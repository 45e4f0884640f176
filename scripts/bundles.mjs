// What esbuild makes of src: the library as ES modules that share their parts, and the CLI as one CommonJS file with a small one that starts it. See docs/decisions/0015-bundles.md.
import { readFileSync } from 'node:fs'
import { join, relative, sep } from 'node:path'
import { fileURLToPath } from 'node:url'
import { buildPackages } from './runtimes.mjs'

const root = fileURLToPath(new URL('..', import.meta.url))
const source = join(root, 'src')
const target = join(root, 'dist')

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
      build.onLoad({ filter: /\.ts$/ }, ({ path }) => {
        const text = readFileSync(path, 'utf8')
        if (!path.startsWith(source + sep) || !text.includes('import.meta.url')) return undefined
        const place = distMark + relative(source, path).replace(/\.ts$/, '.js')
        return { contents: text.replaceAll('import.meta.url', `new URL('${place}', ${here}).href`), loader: 'ts' }
      })
    },
  }
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

/** @returns {Promise<Outputs>} */
export async function makeCli() {
  /** @type {import('esbuild').BuildOptions} */
  const options = {
    format: 'cjs',
    // Names stay: they are in stack traces. ASCII, so that it is read and scanned as bytes.
    minifySyntax: true,
    minifyWhitespace: true,
    charset: 'ascii',
    external: ['@modelcontextprotocol/*'],
    plugins: [ownPlaces("require('node:url').pathToFileURL(__filename)")],
  }
  const [program, start] = await Promise.all([
    build({ ...options, entryPoints: { 'cli/program': join(source, 'cli/main.ts') }, banner: { js: clock } }),
    build({ ...options, entryPoints: { 'cli/main': join(source, 'start.ts') }, target: 'node12', banner: { js: `#!/usr/bin/env node\n${needsNode}` } }),
  ])
  return new Map([...program, ...start, ['cli/package.json', Buffer.from('{ "type": "commonjs" }\n')]])
}
