// The kernel of JavaScript and TypeScript. The engine's frames come in here, and one execution at a time is run.
import { Execution } from './execution.js'
import { Sources } from './errors.js'
import { FrameReader, writeFrame } from './frames.js'
import { Globals, protectDescriptors } from './guard.js'
import { Modules } from './modules.js'
import { Output } from './output.js'
import { Signals } from './signals.js'
import { Surface } from './surface.js'
import { systemOf } from './system.js'

/** @param host what the bootstrap hands over: the process, its `require`, its global object, and how to compile something for the kernel's own realm */
export function start(host) {
  new Kernel(systemOf(host)).begin()
}

class Kernel {
  #system
  #parts
  #execution
  #number = 0
  #loaded = new Map()
  #pending = { env: [], options: new Map() }

  constructor(system) {
    this.#system = system
    const session = new system.Session()
    session.connect()
    const signals = new Signals(system, (isAsked) => this.#execution?.check(isAsked))
    const output = new Output(system, signals)
    const globals = new Globals(system)
    this.#parts = { system, session, signals, output, globals, sources: new Sources(), modules: new Modules(system), stripper: () => this.#stripper() }
    this.#parts.surface = new Surface(this.#parts, () => this.#execution)
  }

  begin() {
    const { system } = this.#parts
    protectDescriptors(system)
    this.#parts.globals.keep()
    new FrameReader(system, (frame) => this.#take(frame))
    writeFrame(system, { type: 'ready', token: '-', json: JSON.stringify({ language: 'javascript', version: system.version }) })
  }

  #take({ type, token, payload }) {
    const text = type === 'execute' ? payload : this.#system.utf8(payload)
    switch (type) {
      case 'load':
        for (const [name, source] of Object.entries(JSON.parse(text).modules)) this.#loaded.set(name, { source })
        return
      case 'cwd':
        return this.#enter(text)
      case 'env':
        this.#pending.env.push([text.slice(0, text.indexOf('=')), text.slice(text.indexOf('=') + 1)])
        return
      case 'option':
        this.#pending.options.set(text.slice(0, text.indexOf('=')), text.slice(text.indexOf('=') + 1))
        return
      case 'execute':
        return this.#execute(token, payload)
      case 'input':
      case 'eof':
        if (this.#execution?.token === token) this.#execution.answer(type === 'eof' ? null : text)
        return
      default:
        this.#system.end(65)
    }
  }

  #enter(folder) {
    try {
      this.#system.chdir(folder)
    } catch (error) {
      // What cannot be entered is told by the first thing that looks at it.
      this.#parts.surface.tell(`cannot enter ${folder}: ${error.code}`)
    }
  }

  #execute(token, payload) {
    const { env, options } = this.#pending
    this.#pending = { env: [], options: new Map() }
    this.#number++
    const request = { token, number: this.#number, source: this.#system.utf8(payload), env, options }
    this.#execution = new Execution(this.#parts, request, () => {
      this.#execution = undefined
    })
    this.#execution.run()
  }

  /** Compiled when TypeScript is first used; it comes in a frame of its own. */
  #stripper() {
    const module = this.#loaded.get('typescript')
    if (module === undefined) throw new SyntaxError('TypeScript was not loaded into this context')
    if (module.exports === undefined) {
      const loading = { exports: {} }
      this.#system.compile('typescript', module.source, ['module', 'exports', 'require'])(loading, loading.exports, this.#system.host.require)
      module.exports = loading.exports
      module.source = undefined
    }
    return module.exports
  }
}
