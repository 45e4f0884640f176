// `require` and `import` as a script has them that lies in the working directory, wherever that is at the moment.

export class Modules {
  #system
  #Module
  #made = new Map()
  #path
  #url

  constructor(system) {
    this.#system = system
    this.#Module = system.host.require('node:module')
    this.#path = system.host.require('node:path')
    this.#url = system.host.require('node:url')
  }

  /** A module that was never read from a file: Node resolves from where it is said to be. */
  #here() {
    const folder = this.#system.cwd()
    const made = this.#made.get(folder)
    if (made !== undefined) return made
    const filename = this.#path.join(folder, '[code].cjs')
    const module = new this.#Module(filename, undefined)
    module.filename = filename
    module.paths = this.#Module._nodeModulePaths(folder)
    module._compile('module.exports = { require, import: (name, options) => (options === undefined ? import(name) : import(name, options)) }', filename)
    const here = { ...module.exports, filename, folder }
    this.#made.set(folder, here)
    return here
  }

  get require() {
    const here = () => this.#here().require
    const require = (id) => here()(id)
    const resolve = (...given) => here().resolve(...given)
    resolve.paths = (...given) => here().resolve.paths(...given)
    const { cache, extensions, main } = this.#system.host.require
    return Object.assign(require, { resolve, cache, extensions, main })
  }

  import(specifier, ...options) {
    return this.#here().import(specifier, ...options)
  }

  async importNames(names, specifier, ...options) {
    const namespace = await this.import(specifier, ...options)
    const missing = names.find((name) => !(name in namespace))
    if (missing === undefined) return namespace
    // Those of CommonJS that Node did not foresee are on what is exported.
    const exported = namespace.default
    if (missing !== 'default' && exported !== null && /^(object|function)$/.test(typeof exported) && missing in exported)
      return new Proxy(namespace, { get: (_, name) => (name in namespace ? namespace[name] : exported[name]) })
    throw new this.#system.global.SyntaxError(`The requested module '${specifier}' does not provide an export named '${missing}'`)
  }

  get meta() {
    const { filename, folder, require } = this.#here()
    return { url: this.#url.pathToFileURL(filename).href, filename, dirname: folder, resolve: (id) => this.#url.pathToFileURL(require.resolve(id)).href }
  }
}
