/**
 * Python's bytecode, compiled by the template's own Python in a cell and taken from what it prints. It is believed in nothing but its content: where a file goes is
 * decided here, beside a source that is really there.
 */
import { lstatSync, mkdirSync, writeFileSync } from 'node:fs'
import { join, posix } from 'node:path'
import { SandboxError } from '../contract/errors.js'
import type { Bench } from './workshop.js'

/** Of hashes nobody asks, and not of times: so it is the same whenever it is built, and loads without a look at its source. Tests are not for running here. */
const program = `
import importlib.util, os, struct, sys
from importlib import _bootstrap_external as machinery
shard, shards = int(sys.argv[1]), int(sys.argv[2])
sources = []
for top in sorted(os.listdir("/usr/lib")):
    if not top.startswith("python3"):
        continue
    for folder, folders, names in os.walk("/usr/lib/" + top):
        folders[:] = sorted(name for name in folders if name not in ("tests", "test", "__pycache__"))
        sources += [folder + "/" + name for name in sorted(names) if name.endswith(".py")]
for path in sources[shard::shards]:
    if os.path.islink(path):
        continue
    try:
        with open(path, "rb") as file:
            source = file.read()
        code = compile(source, path, "exec", dont_inherit=True)
    except (SyntaxError, ValueError):
        continue
    bytecode = machinery._code_to_hash_pyc(code, importlib.util.source_hash(source), False)
    place = importlib.util.cache_from_source(path).encode()
    sys.stdout.buffer.write(struct.pack(">II", len(place), len(bytecode)) + place + bytecode)
`

const atOnce = 2
const headBytes = 8
const mostPathBytes = 4096
const mostBytes = 64 * 2 ** 20
const placePattern = /^\/(usr\/lib\/python3[^/]*\/(?:[^/]+\/)*)__pycache__\/([^/]+)\.cpython-\d+\.pyc$/

/** Resolves to how many there are. */
export async function compilePython(bench: Bench, root: string): Promise<number> {
  const counts = await Promise.all(Array.from({ length: atOnce }, (_, shard) => compileShard(bench, root, shard)))
  return counts.reduce((sum, count) => sum + count, 0)
}

async function compileShard(bench: Bench, root: string, shard: number): Promise<number> {
  const intake = new Intake(root)
  const { failure } = await bench.run(['python3', '-I', '-W', 'ignore', '-c', program, `${shard}`, `${atOnce}`], (bytes) => intake.take(bytes))
  if (failure !== undefined) throw new SandboxError('broken', `Python's bytecode could not be made: ${failure}`)
  return intake.finish()
}

class Intake {
  readonly #root: string
  #waiting: Buffer[] = []
  #length = 0
  #count = 0

  constructor(root: string) {
    this.#root = root
  }

  take(bytes: Uint8Array): void {
    this.#waiting.push(Buffer.from(bytes))
    this.#length += bytes.length
    if (this.#length < headBytes) return
    let rest = Buffer.concat(this.#waiting)
    for (let whole = wholeLength(rest); whole !== undefined && rest.length >= whole; whole = wholeLength(rest)) {
      this.#keep(rest.subarray(0, whole))
      rest = rest.subarray(whole)
    }
    this.#waiting = [rest]
    this.#length = rest.length
  }

  finish(): number {
    if (this.#length > 0) throw new SandboxError('broken', "Python's bytecode ends in the middle of a file")
    return this.#count
  }

  #keep(message: Buffer): void {
    const pathEnd = headBytes + message.readUInt32BE(0)
    const [, folder, name] = placePattern.exec(message.toString('utf8', headBytes, pathEnd)) ?? []
    if (folder === undefined || name === undefined || posix.normalize(folder) !== folder)
      throw new SandboxError('broken', 'bytecode for a place where none belongs')
    const source = lstatSync(join(this.#root, folder, `${name}.py`), { throwIfNoEntry: false })
    if (source?.isFile() !== true) throw new SandboxError('broken', `bytecode without its source: ${folder}${name}.py`)
    const file = join(this.#root, message.toString('utf8', headBytes + 1, pathEnd))
    mkdirSync(join(this.#root, folder, '__pycache__'), { recursive: true })
    writeFileSync(file, message.subarray(pathEnd), { flag: 'wx' })
    this.#count += 1
  }
}

function wholeLength(bytes: Buffer): number | undefined {
  if (bytes.length < headBytes) return undefined
  const [path, content] = [bytes.readUInt32BE(0), bytes.readUInt32BE(4)]
  if (path > mostPathBytes || content > mostBytes) throw new SandboxError('broken', 'bytecode is announced that is too large to be any')
  return headBytes + path + content
}
