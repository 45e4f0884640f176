import { execFile } from 'node:child_process'
import { copyFileSync, lstatSync, mkdirSync, readlinkSync, realpathSync, symlinkSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'

const execute = promisify(execFile)
const askPython = 'import os, sysconfig; print(os.path.realpath("/usr/bin/python3")); print(sysconfig.get_path("stdlib"))'

/** A small root filesystem of the host's own files: Python with its library, `sleep`, `true`, and what they are linked with. There is no registry to take an image from. */
export async function makePythonRoot(folder, { signal }) {
  const root = join(folder, 'rootfs')
  for (const each of ['proc', 'sys', 'dev', 'tmp', 'etc', 'usr/bin', 'usr/lib', 'usr/lib64']) mkdirSync(join(root, each), { recursive: true })
  for (const each of ['bin', 'lib', 'lib64']) linkAsOnHost(root, each)
  const [interpreter, library] = (await execute('/usr/bin/python3', ['-c', askPython], { signal })).stdout.trim().split('\n')
  for (const program of [interpreter, '/usr/bin/sleep', '/usr/bin/true']) {
    for (const file of [program, ...(await librariesOf(program))]) copyInto(root, file)
  }
  symlinkSync(interpreter, join(root, 'usr/bin/python3'))
  // Times are kept, so that compiled modules are taken as they are.
  await execute('cp', ['-a', library, join(root, dirname(library))], { signal })
  return root
}

/** Where the host has a link, such as /lib to usr/lib, libraries are sought through it. */
function linkAsOnHost(root, name) {
  const isLink = lstatSync(`/${name}`, { throwIfNoEntry: false })?.isSymbolicLink()
  if (isLink) symlinkSync(readlinkSync(`/${name}`), join(root, name))
}

function copyInto(root, file) {
  const target = join(root, file)
  mkdirSync(dirname(target), { recursive: true })
  copyFileSync(realpathSync(file), target)
}

async function librariesOf(program) {
  const { stdout } = await execute('ldd', [program])
  return [...stdout.matchAll(/(\/\S+) \(0x/g)].map(([, path]) => path)
}
