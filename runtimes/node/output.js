// What the code prints, and the marks that tell where in it a frame belongs. process.stdout and process.stderr are streams of our own that write at once:
// Node's would turn descriptors 1 and 2 non-blocking under the feet of child processes, and keep what does not fit for later.
import { writeAll } from './frames.js'

const standard = ['stdout', 'stderr']

export class Output {
  #system
  #signals
  #streams = {}
  #console
  #token
  #mark = 0
  #last

  constructor(system, signals) {
    this.#system = system
    this.#signals = signals
    this.#streams = { stdout: this.#makeStream(1), stderr: this.#makeStream(2) }
    for (const name of standard) this.#define(name)
    this.#console = this.#takeConsole()
  }

  /** @param {string} token that of the execution which begins */
  begin(token) {
    this.#token = token
    this.#mark = -1
    this.mark()
  }

  end() {
    this.#token = undefined
  }

  /** Prints the next mark on both streams; `;` is one that no frame follows. @returns {number} its number */
  mark(kind = ':') {
    this.#last = undefined
    this.#mark++
    const bytes = this.#system.bytesOf(`\x1e${this.#token}${kind}${this.#mark}\x1e`)
    this.#signals.whole(() => {
      for (const descriptor of [1, 2]) writeAll(this.#system, descriptor, bytes)
    })
    return this.#mark
  }

  /** Puts back what prints: code may replace it, for as long as it runs. */
  restore() {
    for (const name of standard) {
      const stream = this.#streams[name]
      for (const [key, method] of stream.own) stream.object[key] = method
      this.#define(name)
    }
    const { object, methods } = this.#console
    try {
      Object.defineProperty(this.#system.global, 'console', { value: object, writable: true, configurable: true, enumerable: false })
    } catch {
      // Code made it unchangeable, and has what it wanted.
    }
    for (const [name, method] of methods) if (object[name] !== method) object[name] = method
  }

  #takeConsole() {
    // Node's own tells every call to the inspector too, which keeps what was printed.
    const object = this.#system.global.console
    const { stdout, stderr } = this.#streams
    const plain = new object.Console({ stdout: stdout.object, stderr: stderr.object })
    for (const [name, method] of Object.entries(plain)) if (typeof object[name] === 'function' && typeof method === 'function') object[name] = method
    return { object, methods: Object.entries(object).filter(([, method]) => typeof method === 'function') }
  }

  #define(name) {
    try {
      const { object } = this.#streams[name]
      Object.defineProperty(this.#system.process, name, { get: () => object, set: undefined, configurable: true, enumerable: true })
    } catch {
      // As above.
    }
  }

  #makeStream(descriptor) {
    const { Writable } = this.#system
    const object = new Writable({ decodeStrings: false })
    // Children print on the other ends; nothing may end these.
    const own = Object.entries({
      write: (chunk, encoding, callback) => this.#write(descriptor, chunk, typeof encoding === 'function' ? [undefined, encoding] : [encoding, callback]),
      end: (chunk, encoding, callback) => {
        if (chunk !== undefined && chunk !== null && typeof chunk !== 'function') this.#write(descriptor, chunk, [encoding, callback])
        return object
      },
      destroy: () => object,
    })
    for (const [key, method] of own) object[key] = method
    object.fd = descriptor
    object._type = 'pipe'
    object._isStdio = true
    return { object, own }
  }

  #write(descriptor, chunk, [encoding, callback]) {
    const bytes = this.#bytesOf(chunk, encoding)
    // The order between both streams is kept by a mark wherever code changes from one to the other.
    if (this.#token !== undefined && this.#last !== undefined && this.#last !== descriptor) this.mark(';')
    this.#last = descriptor
    writeAll(this.#system, descriptor, bytes)
    if (typeof callback === 'function') this.#system.nextTick(callback)
    return true
  }

  #bytesOf(chunk, encoding) {
    if (typeof chunk === 'string') {
      const isText = encoding === undefined || encoding === null || encoding === 'utf8' || encoding === 'utf-8' || encoding === 'buffer'
      return isText ? this.#system.bytesOf(chunk) : Uint8Array.from(this.#system.bufferFrom(chunk, encoding))
    }
    if (ArrayBuffer.isView(chunk)) return new Uint8Array(chunk.buffer, chunk.byteOffset, chunk.byteLength)
    const error = new this.#system.global.TypeError(`The "chunk" argument must be of type string or an instance of Buffer, TypedArray, or DataView.`)
    error.code = 'ERR_INVALID_ARG_TYPE'
    throw error
  }
}
