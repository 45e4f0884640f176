/**
 * The command as it is installed: finds its program beside itself and starts it, from what was compiled before where there is such a thing. The program is in two files, each a
 * table of modules that are executed when they are first asked for: what most starts begin with, and the rest, which is read when something of it is needed.
 */
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { runProgram } from './sys/code-cache.js'
import { cachePlace } from './sys/places.js'

const [, , word = ''] = process.argv
const mark = 'glovebox:'

type Modules = Readonly<Record<string, (() => unknown) | undefined>>

function load(file: string): Modules {
  const modules = runProgram({
    path: fileURLToPath(new URL(`./cli/${file}`, import.meta.url)),
    part: /^[a-z]{1,16}$/.test(word) ? word : 'other',
    folder: () => {
      if (process.env.NODE_DISABLE_COMPILE_CACHE) throw new Error('no cache is wanted')
      return join(cachePlace(), 'code')
    },
    find: (name) => (name.startsWith(mark) ? moduleNamed(name.slice(mark.length)) : undefined),
  })
  return modules as Modules
}

const early = load('program.js')
const rest: { modules?: Modules } = {}

function moduleNamed(name: string): unknown {
  const module = early[name] ?? (rest.modules ??= load('rest.js'))[name]
  return module?.()
}

moduleNamed('cli/main.ts')
