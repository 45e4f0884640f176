// Whether the native programs of this machine are newer than everything they are made of.
import { existsSync, readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'

const programs = ['warden', 'launcher', 'seccomp-compile', 'inspect', 'prober', 'zygote.so']

/** @param {string} root */
export function isNativeCurrent(root) {
  const built = programs.map((name) => join(root, `dist/native/linux-${process.arch}`, name))
  if (!built.every((path) => existsSync(path))) return false
  const sources = readdirSync(join(root, 'warden'), { recursive: true, encoding: 'utf8' }).map((name) => join(root, 'warden', name))
  const newest = Math.max(...[...sources, join(root, 'scripts/build-native.mjs')].map((path) => statSync(path).mtimeMs))
  return built.every((path) => statSync(path).mtimeMs >= newest)
}
