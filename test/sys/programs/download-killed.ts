/** Receives a folder on another file system, and is killed as soon as some of it is copied there. */
import { readdirSync } from 'node:fs'
import { localFiles } from '../../../src/sys/host-folder.js'
import { craftTar, inPieces } from '../tar-archives.js'

const [out = '', watched = '', copied = ''] = process.argv.slice(2)

const timer = setInterval(() => {
  const isBegun = readdirSync(watched, { recursive: true, encoding: 'utf8' }).some((name) => new RegExp(copied).test(name))
  if (isBegun) process.kill(process.pid, 'SIGKILL')
}, 1)
const entries = Array.from({ length: 300 }, (_, index) => ({ name: `d/f${index}`, content: 'x'.repeat(20_000) }))
await localFiles.receiveFolder(out, inPieces(craftTar([{ name: 'd/', type: '5' }, ...entries])), { overwrite: true })
clearInterval(timer)
