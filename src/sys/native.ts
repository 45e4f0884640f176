import { existsSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { SandboxError } from '../contract/errors.js'

export type NativeName = 'warden' | 'launcher' | 'seccomp-compile' | 'inspect' | 'prober' | 'zygote.so'

/** Absolute path of one of our native programs, built for this machine. */
export function nativeProgram(name: NativeName): string {
  const path = join(packageRoot(), 'dist', 'native', `linux-${process.arch}`, name)
  if (!existsSync(path)) {
    throw new SandboxError('unavailable', `native program ${name} is not built for linux-${process.arch}`, { hint: './glovebox doctor' })
  }
  return path
}

/** The nearest folder upward that holds our package.json: the same from src and from dist, in a clone and in node_modules. */
function packageRoot(): string {
  let folder = dirname(fileURLToPath(import.meta.url))
  while (!existsSync(join(folder, 'package.json'))) {
    const parent = dirname(folder)
    if (parent === folder) throw new SandboxError('internal', 'no package.json above the running code')
    folder = parent
  }
  return folder
}
