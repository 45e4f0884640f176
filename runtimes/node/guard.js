// What code could do to the process under the kernel, and how it goes on nevertheless.

/** Node can neither copy a descriptor nor move it, so those that were there before any code are not for code to close. */
export function protectDescriptors(system) {
  const { fs, fstatSync } = system
  const isOpen = (descriptor) => {
    try {
      fstatSync(descriptor)
      return true
    } catch {
      return false
    }
  }
  const ours = new Set(Array.from({ length: 64 }, (_, descriptor) => descriptor).filter(isOpen))
  const { close, closeSync } = fs
  const refuse = (descriptor) => {
    const { global } = system
    return Object.assign(new global.Error('EBADF: bad file descriptor, close'), { errno: -9, code: 'EBADF', syscall: 'close', descriptor })
  }
  fs.closeSync = function closeSync_(descriptor) {
    if (!ours.has(descriptor)) return closeSync(descriptor)
    // Of 0, 1 and 2 code is told that they are closed; they would be back for the next execution anyway.
    if (descriptor > 2) throw refuse(descriptor)
  }
  fs.close = function close_(descriptor, callback) {
    if (!ours.has(descriptor)) return callback === undefined ? close(descriptor) : close(descriptor, callback)
    if (typeof callback === 'function') system.nextTick(callback, descriptor > 2 ? refuse(descriptor) : null)
  }
  system.host.require('node:module').syncBuiltinESMExports()
}

/** Globals that code deleted are there again; those that it replaced are as it wants them. */
export class Globals {
  #global
  #kept = []

  constructor(system) {
    this.#global = system.global
  }

  /** What there is now is what comes back. */
  keep() {
    this.#kept = Object.entries(Object.getOwnPropertyDescriptors(this.#global)).filter(([, { configurable }]) => configurable)
  }

  restore() {
    for (const [name, descriptor] of this.#kept) {
      if (Object.hasOwn(this.#global, name)) continue
      try {
        Object.defineProperty(this.#global, name, descriptor)
      } catch {
        // Code made its global object inextensible.
      }
    }
  }

  /** Makes room for what code is about to declare: accessors such as `crypto` would swallow it. */
  declare(names) {
    for (const name of names) {
      const present = Object.getOwnPropertyDescriptor(this.#global, name)
      if (present !== undefined && (!present.configurable || present.get === undefined)) continue
      try {
        Object.defineProperty(this.#global, name, { value: undefined, writable: true, configurable: true, enumerable: true })
      } catch {
        // As above; the declaration itself will say what is wrong.
      }
    }
  }
}

/** Sets variables of the environment for one execution. @returns {() => void} puts back what was there */
export function withEnvironment(env, entries) {
  const before = entries.map(([name]) => [name, env[name]])
  for (const [name, value] of entries) env[name] = value
  return () => {
    for (const [name, value] of before) {
      if (value === undefined) Reflect.deleteProperty(env, name)
      else env[name] = value
    }
  }
}
