/**
 * The command as it is installed: finds its program beside itself and starts it, from what was compiled before where there is such a thing. The program is in three files, each a
 * table of modules that are executed when they are first asked for: what starts begin with, what a run needs once its cell begins, and the rest.
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

const files = ['program.js', 'running.js', 'rest.js']
const loaded: (Modules | undefined)[] = []

/** Of the first file that has it, for which they are read one after the other. */
function moduleNamed(name: string): unknown {
  for (const [index, file] of files.entries()) {
    const module = (loaded[index] ??= load(file))[name]
    if (module) return module()
  }
  return undefined
}

// By when a run first waits, its cell has begun, and takes as long as this.
if (word === 'run') setImmediate(() => (loaded[1] ??= load('running.js')))
moduleNamed('cli/main.ts')
