/** The command as it is installed: finds its program beside itself and starts it, from what was compiled before where there is such a thing. */
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { runProgram } from './sys/code-cache.js'
import { cachePlace } from './sys/places.js'

/** Only commands are worth a cache: help and version are printed faster than one is read. */
function partOf(word: string | undefined): string | undefined {
  return word !== undefined && /^[a-z]{1,16}$/.test(word) && word !== 'help' ? word : undefined
}

const part = partOf(process.argv[2])

runProgram({
  path: fileURLToPath(new URL('./cli/program.js', import.meta.url)),
  part: part ?? 'none',
  folder: () => {
    if (part === undefined || process.env.NODE_DISABLE_COMPILE_CACHE) throw new Error('no cache is wanted')
    return join(cachePlace(), 'code')
  },
})
