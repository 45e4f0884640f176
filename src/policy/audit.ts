import type { Ceiling, Policy } from '../contract/policy.js'
import { auditLimits, type Machine } from './audit-limits.js'
import { auditNetwork } from './audit-network.js'
import { isWithin } from './host-path.js'
import { printable } from './refusal.js'

export const severities = ['high', 'medium', 'low'] as const

/** One thing that a policy grants and that may cost its author something. */
export interface Finding {
  readonly severity: (typeof severities)[number]
  /** Where in the policy: `ceiling.mounts.modes`. */
  readonly field: string
  readonly grant: string
  readonly consequence: string
}

/** Every risky grant of a policy as it takes effect, presets included; the worst first. */
export function auditPolicy(policy: Policy, machine: Machine): readonly Finding[] {
  const { ceiling } = policy
  const findings = [
    ...auditBoundary(ceiling),
    ...auditMounts(ceiling.mounts),
    ...auditLimits(ceiling, machine),
    ...auditPrograms(policy),
    ...auditNetwork(policy),
    ...auditProfile(policy),
    ...auditSecrets(policy),
    ...auditDeadEnds(ceiling),
    ...policy.layers.filter(({ onExceed }) => onExceed === 'clamp').map(() => lowering),
  ]
  return findings.sort((a, b) => severities.indexOf(a.severity) - severities.indexOf(b.severity))
}

const lowering: Finding = {
  severity: 'low',
  field: 'onExceed',
  grant: 'a spec above a cap is lowered, not refused',
  consequence: 'programs run with less than they were written for; only info.clamped and a line on stderr say so',
}

function auditBoundary({ minTier, users, roots, seccomp }: Ceiling): Finding[] {
  const findings: (Finding | undefined)[] = [
    minTier === undefined || minTier === 'none'
      ? {
          severity: 'high',
          field: 'ceiling.minTier',
          grant: "a spec may ask for tier 'none'",
          consequence: 'its programs then run with no boundary at all, as whoever runs us',
        }
      : undefined,
    minTier === 'wasm'
      ? {
          severity: 'medium',
          field: 'ceiling.minTier',
          grant: "tier 'wasm' is accepted",
          consequence: 'no kernel boundary stands behind the runtime that interprets the code',
        }
      : undefined,
    seccomp === 'default-only'
      ? undefined
      : {
          severity: 'high',
          field: 'ceiling.seccomp',
          grant: 'a spec may bring a seccomp profile of its own',
          consequence: 'it may allow every system call, and with it whatever hole the kernel has',
        },
    users !== undefined && !users.includes('root')
      ? undefined
      : {
          severity: 'medium',
          field: 'ceiling.users',
          grant: 'programs may run as root of their cell',
          consequence: 'they hold capabilities there, and reach code of the kernel that others cannot',
        },
    roots !== undefined && !roots.includes('overlay')
      ? undefined
      : {
          severity: 'low',
          field: 'ceiling.roots',
          grant: "root 'overlay' may be asked for",
          consequence: 'programs may replace the tools of their own cell, so later runs in the same sandbox cannot trust them',
        },
  ]
  return findings.filter((finding) => finding !== undefined)
}

/** Folders that hold more than anyone means to hand over. */
const wideFolders = ['/', '/home', '/root', '/etc', '/var', '/usr', '/opt', '/run', '/boot', '/tmp', '/srv', '/mnt', '/media', '/proc', '/sys', '/dev']

function auditMounts(mounts: Ceiling['mounts'] = {}): Finding[] {
  const { sources, modes = ['ro', 'rw'] } = mounts
  if (modes.length === 0 || sources?.length === 0) return []
  const where = sources === undefined ? 'any folder of this machine' : sources.map(printable).join(', ')
  const writing: Finding = {
    severity: 'high',
    field: 'ceiling.mounts.modes',
    grant: `mounts for writing: ${where}`,
    consequence: 'programs may change or delete everything beneath, and leave there what others will run',
  }
  return [
    ...(modes.includes('rw') ? [writing] : []),
    ...(sources ?? ['/']).filter(isWide).map((folder) => wideMount(sources === undefined ? undefined : folder)),
  ]
}

function isWide(folder: string): boolean {
  return wideFolders.includes(folder) || /^\/home\/[^/]+$/.test(folder) || isWithin(folder, '/proc') || isWithin(folder, '/sys') || isWithin(folder, '/dev')
}

/** Of any folder when none is given. */
function wideMount(folder: string | undefined): Finding {
  return {
    severity: 'high',
    field: 'ceiling.mounts.sources',
    grant: folder === undefined ? 'mounts of any folder of this machine' : `mounts of ${printable(folder)} and all beneath`,
    consequence: 'programs may read whatever is there: keys, passwords, the files of others',
  }
}

const interpreters =
  /^(?:(?:ba|da|z|k|fi|a)?sh|busybox|python[\d.]*|pypy[\d.]*|node|nodejs|deno|bun|perl[\d.]*|ruby[\d.]*|php[\d.]*|lua[\d.]*|java|awk|gawk|mawk|env|xargs|find|vim?|emacs|git|make|tar|gcc|cc|ssh|ld\.so.*|ld-.*)$/

function auditPrograms({ ceiling }: Policy): Finding[] {
  if (ceiling.commands === undefined) {
    return [{ severity: 'low', field: 'ceiling.commands', grant: 'every program may be executed', consequence: 'only the boundary holds, not what is in it' }]
  }
  const able = ceiling.commands.filter((name) => interpreters.test(name.split('/').at(-1) ?? ''))
  const interpreter: Finding = {
    severity: 'medium',
    field: 'ceiling.commands',
    grant: `can run other code: ${able.map(printable).join(', ')}`,
    consequence: 'an interpreter or shell can do anything in its own process: the list says what is started, not what it does',
  }
  return able.length > 0 ? [interpreter] : []
}

function auditProfile({ defaults }: Policy): Finding[] {
  if (defaults.seccomp === undefined) return []
  const consequence = 'nobody here can say which holes of the kernel it leaves within reach'
  return [{ severity: 'medium', field: 'defaults.seccomp', grant: 'a seccomp profile other than ours', consequence }]
}

const secretName = /secret|token|passw|passphrase|credential|private_?key|api_?key|access_?key|auth|session|cookie/i
const secretValue = /-----BEGIN|^(?:gh[pousr]_|github_pat_|sk-|AKIA|xox[abp]-|eyJ[\w-]+\.)|:\/\/[^/\s:@]+:[^/\s@]+@/

/** Values are never shown. */
function auditSecrets({ defaults }: Policy): Finding[] {
  const names = Object.entries(defaults.env ?? {}).flatMap(([name, value]) => (secretName.test(name) || secretValue.test(value) ? [name] : []))
  return names.map((name) => ({
    severity: 'high',
    field: `defaults.env.${printable(name)}`,
    grant: 'looks like a secret, and is handed to every program',
    consequence: 'whatever runs can print it, and it stands in this file for all who can read it',
  }))
}

const choices = ['users', 'roots', 'templates', 'drivers'] as const satisfies readonly (keyof Ceiling)[]

function auditDeadEnds(ceiling: Ceiling): Finding[] {
  return choices
    .filter((name) => ceiling[name]?.length === 0)
    .map((name) => ({
      severity: 'low',
      field: `ceiling.${name}`,
      grant: 'nothing: the list is empty',
      consequence: 'no sandbox can be created under this policy',
    }))
}
