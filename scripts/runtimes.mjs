// Makes of runtimes/ what the engine reads: for every kernel its interpreter, its arguments and the payload of its `load` frame, and an index of them all.
// runtimes/README.md tells the format.
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { extname, join, relative, sep } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))

/**
 * @typedef {{ bundle: string, main: string } | { main: string } | { text: string }} LoadPlan
 * @typedef {{ options?: string[], load?: { name: string, modules: Record<string, string> } }} LanguagePlan
 * @typedef {{ interpreters: string[], argv: string[], env?: Record<string, string>, bootstrap: string, programs?: Record<string, string[]>, load: LoadPlan, languages: Record<string, LanguagePlan> }} Plan
 */

/** The developer's packages, or those that the set-up installed for building. */
export const buildPackages = createRequire(
  join(existsSync(join(root, 'node_modules/esbuild/package.json')) ? root : join(root, 'build/toolchain'), 'package.json'),
)

/** @returns {import('esbuild')} */
function loadEsbuild() {
  return buildPackages('esbuild')
}

/** @param {string} folder @param {string} extension @returns {string[]} relative to it */
function filesBelow(folder, extension) {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && extname(entry.name) === extension)
    .map((entry) => relative(folder, join(entry.parentPath, entry.name)))
    .sort()
}

/** One file without comments and blanks: it is sent to every context. @param {string} entry @returns {Promise<string>} */
async function bundle(entry) {
  const { outputFiles } = await loadEsbuild().build({
    entryPoints: [entry],
    bundle: true,
    format: 'cjs',
    target: 'node18',
    charset: 'utf8',
    minify: true,
    legalComments: 'none',
    logLevel: 'silent',
    write: false,
    loader: { '.cjs': 'text' },
    plugins: [{ name: 'packages', setup: (build) => build.onResolve({ filter: /^[a-z@]/ }, ({ path }) => ({ path: esModuleOf(path) })) }],
  })
  return outputFiles[0]?.text ?? ''
}

/** @param {string} name */
function esModuleOf(name) {
  const main = buildPackages.resolve(name)
  const module = main.replace(/\.js$/, '.mjs')
  return existsSync(module) ? module : main
}

/** @param {string} folder @param {Plan} plan @returns {Promise<{ name: string, text: string }>} */
async function payloadOf(folder, { load, bootstrap, programs = {} }) {
  if ('text' in load) return { name: `load${extname(load.text)}`, text: readFileSync(join(folder, load.text), 'utf8') }
  if ('bundle' in load) {
    return { name: 'load.json', text: JSON.stringify({ modules: { [load.main]: await bundle(join(folder, load.bundle)) }, main: load.main }) }
  }
  const others = [bootstrap, ...Object.values(programs).flat()]
  const modules = filesBelow(folder, extname(bootstrap)).filter((path) => !others.includes(path))
  /** @param {string} path */
  const nameOf = (path) =>
    path
      .slice(0, -extname(path).length)
      .split(sep)
      .filter((part) => part !== '__init__')
      .join('.')
  return {
    name: 'load.json',
    text: JSON.stringify({ modules: Object.fromEntries(modules.map((path) => [nameOf(path), readFileSync(join(folder, path), 'utf8')])), main: load.main }),
  }
}

/** @param {string} folder @param {Plan} plan @returns {Promise<string>} */
async function bootstrapOf(folder, { bootstrap }) {
  const text = readFileSync(join(folder, bootstrap), 'utf8')
  if (extname(bootstrap) !== '.cjs') return text
  return (await loadEsbuild().transform(text, { minify: true, target: 'node18', charset: 'utf8' })).code.trim()
}

/** @param {Record<string, string>} modules names to packages @returns {string} */
function packagesAsPayload(modules) {
  return JSON.stringify({ modules: Object.fromEntries(Object.entries(modules).map(([name, of]) => [name, readFileSync(buildPackages.resolve(of), 'utf8')])) })
}

/** @param {string} name of a kernel @param {string} from the folder that holds them all */
async function makeKernel(name, from) {
  const folder = join(from, name)
  /** @type {Plan} */
  const plan = JSON.parse(readFileSync(join(folder, 'runtime.json'), 'utf8'))
  const bootstrap = await bootstrapOf(folder, plan)
  const payload = await payloadOf(folder, plan)
  const files = [{ path: `${name}/${payload.name}`, text: payload.text }]
  for (const [program, parts] of Object.entries(plan.programs ?? {})) {
    files.push({ path: `${name}/${program}`, text: parts.map((part) => readFileSync(join(folder, part), 'utf8')).join('\n') })
  }
  const languages = Object.entries(plan.languages).map(([language, { options, load }]) => {
    if (load !== undefined) files.push({ path: `${name}/${load.name}`, text: packagesAsPayload(load.modules) })
    return [language, { kernel: name, ...(options === undefined ? {} : { options }), ...(load === undefined ? {} : { load: `${name}/${load.name}` }) }]
  })
  /** @param {string} text */
  const filled = (text) => (text === '{bootstrap}' ? bootstrap : text)
  const kernel = {
    interpreters: plan.interpreters,
    argv: plan.argv.map(filled),
    env: Object.fromEntries(Object.entries(plan.env ?? {}).map(([key, value]) => [key, filled(value)])),
    load: `${name}/${payload.name}`,
  }
  return { name, kernel, languages, files }
}

/**
 * @param {{ from?: string, only?: readonly string[] }} [options]
 * @returns {Promise<Map<string, string>>} paths, relative to dist/runtimes, and what they hold
 */
export async function makeRuntimes({ from = join(root, 'runtimes'), only } = {}) {
  const names = readdirSync(from).filter((name) => existsSync(join(from, name, 'runtime.json')) && (only?.includes(name) ?? true))
  const made = await Promise.all(names.sort().map((name) => makeKernel(name, from)))
  const index = {
    kernels: Object.fromEntries(made.map(({ name, kernel }) => [name, kernel])),
    languages: Object.fromEntries(made.flatMap(({ languages }) => languages)),
  }
  return new Map([
    ['index.json', `${JSON.stringify(index, null, 2)}\n`],
    ...made.flatMap(({ files }) => files.map(({ path, text }) => /** @type {[string, string]} */ ([path, text]))),
  ])
}
