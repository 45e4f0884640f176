// Given to node with -e. Reads the first frame from descriptor 3, which is the kernel's source, and runs it from memory.
// The kernel gets a realm of its own: whatever code does to Array.prototype, JSON or Promise, the kernel's are others.
'use strict'
{
  const fs = require('node:fs')
  const vm = require('node:vm')

  // Until the kernel listens itself: an interrupt that comes early is not the end.
  process.on('SIGINT', () => {})

  const read = (bytes) => {
    for (let got = 0; got < bytes.length; ) {
      try {
        const count = fs.readSync(3, bytes, got, bytes.length - got, null)
        if (count === 0) process.exit(0)
        got += count
      } catch (error) {
        if (error.code !== 'EAGAIN') throw error
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 2)
      }
    }
    return bytes
  }
  let line = ''
  for (let character = ''; character !== '\n' && line.length < 64; line += character) character = String.fromCharCode(read(Buffer.alloc(1))[0])
  const [, length] = /^load - (\d{1,8})\n$/.exec(line) ?? process.exit(65)
  const { modules, main } = JSON.parse(read(Buffer.allocUnsafeSlow(Number(length))).toString())

  const realm = vm.createContext(Object.create(null), { name: 'glovebox' })
  const compile = (name, source, names) => vm.compileFunction(source, names, { filename: `glovebox:${name}`, parsingContext: realm })
  const module = { exports: {} }
  compile(main, modules[main], ['module', 'exports'])(module, module.exports)
  module.exports.start({
    process,
    require,
    compile,
    global: globalThis,
    run: (source, filename) => vm.runInThisContext(source, { filename }),
  })
}
