/** The command as it is installed: finds its program beside itself and starts it, from what was compiled before where there is such a thing. */
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { runProgram } from './sys/code-cache.js'
import { cachePlace } from './sys/places.js'

const [, , word = ''] = process.argv

runProgram({
  path: fileURLToPath(new URL('./cli/program.js', import.meta.url)),
  part: /^[a-z]{1,16}$/.test(word) ? word : 'other',
  folder: () => {
    if (process.env.NODE_DISABLE_COMPILE_CACHE) throw new Error('no cache is wanted')
    return join(cachePlace(), 'code')
  },
})
