import { SandboxError } from '../contract/errors.js'
import type { Mount } from '../contract/spec.js'
import { printable } from './refusal.js'

/** Where a cell shows files of the host's: `self` says whether the folder itself may be one of them. */
const places = [
  { folder: '/workspace', self: true },
  { folder: '/data', self: true },
  { folder: '/input', self: true },
  { folder: '/output', self: true },
  { folder: '/home/user', self: false },
  { folder: '/mnt', self: false },
  { folder: '/srv', self: false },
  { folder: '/opt', self: false },
] as const

const allowed = places.map(({ folder, self }) => (self ? folder : `${folder}/…`)).join(', ')
const mostNameBytes = 255
const encoder = new TextEncoder()

/** Throws SandboxError('invalid') naming the target that no cell could have, or that two mounts share. */
export function checkMountTargets(mounts: readonly Mount[]): void {
  mounts.forEach(({ target }, index) => {
    const why = targetRefusal(target)
    if (why !== undefined) throw new SandboxError('invalid', `mounts[${index}].target: '${printable(target)}' ${why}`)
    const first = mounts.findIndex((mount) => mount.target === target)
    if (first !== index) throw new SandboxError('invalid', `mounts[${index}].target: '${printable(target)}' is the target of mounts[${first}] already`)
  })
}

function targetRefusal(target: string): string | undefined {
  const names = target.split('/').slice(1)
  if (target !== '/' && names.some((name) => name === '' || name === '.' || name === '..'))
    return 'must be written without . and .., doubled and closing slashes'
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is refused here
  if (/[\u0000-\u001f\u007f]/.test(target)) return 'must not contain control characters'
  if (names.some((name) => encoder.encode(name).length > mostNameBytes)) return `has a name of more than ${mostNameBytes} bytes`
  const isAllowed = places.some(({ folder, self }) => (self && target === folder) || target.startsWith(`${folder}/`))
  return isAllowed ? undefined : `is outside the places for mounts: ${allowed}`
}
