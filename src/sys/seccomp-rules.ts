import { SandboxError } from '../contract/errors.js'
import type { SeccompAction, SeccompCondition, SeccompProfile, SeccompRule, SeccompRuleFilter } from './seccomp-profile.js'

/** Where a profile will hold: what its `includes` and `excludes` are decided by. */
export interface SeccompTarget {
  readonly arch: 'x86_64' | 'aarch64'
  /** Names such as CAP_SYS_ADMIN that the guest keeps. */
  readonly capabilities: readonly string[]
  /** As `uname -r` prints it. */
  readonly kernel: string
}

/** Docker's names of architectures in `includes.arches`. */
const dockerArch = { x86_64: 'amd64', aarch64: 'arm64' } as const
const EPERM = 1

export interface SeccompRequest {
  readonly profile: SeccompProfile
  readonly target: SeccompTarget
  /** How errors name the profile. */
  readonly name: string
  /** No file without a name, which could be filled and executed; no rule of a profile allows it back. */
  readonly withoutNamelessFiles: boolean
}

/** What `seccomp-compile` reads. */
export interface SeccompLines {
  readonly text: string
  /** The place in the profile behind each line, where there is one. */
  readonly places: readonly (string | undefined)[]
}

interface Line {
  readonly place: string
  readonly field: string
  readonly call: string
  readonly action: string
  readonly conditions: string
  readonly optional: boolean
}

const notThere = 'errno:38'
const allowing = ['allow', 'log']
const namelessFiles = ['memfd_create', 'memfd_secret']

/**
 * Every entry point of another architecture (i386 and x32 on x86_64) kills the process: a program that enters there would otherwise meet other numbers
 * for the same calls. Calls that a profile could not know, and a clone3 that it does not name, are not there: libraries then use older calls.
 */
export function seccompLines({ profile, target, name, withoutNamelessFiles }: SeccompRequest): SeccompLines {
  const fallback = actionWord(profile.defaultAction, profile.defaultErrnoRet ?? profile.defaultErrno)
  const rules = (profile.syscalls ?? []).map((rule, index) => ({ rule, lines: linesOf(rule, `syscalls[${index}]`), isOurs: isFor(rule, target) }))
  const lines = rules.flatMap((each) => (each.isOurs ? each.lines : []))
  refuseContradictions(lines, name)
  const known = rules.flatMap((each) => (each.isOurs ? [] : each.lines.map(({ call }) => `known ${call}`)))
  const texts = new Map<string, string | undefined>([
    [`default ${fallback}`, undefined],
    ['foreign kill-process', undefined],
    ...lines.map((line): [string, string] => [`${line.optional ? 'maybe' : 'rule'} ${line.action} ${line.call}${line.conditions}`, line.field]),
    ...known.map((text): [string, undefined] => [text, undefined]),
    ...ours({ fallback, lines, withoutNamelessFiles }).map((text): [string, undefined] => [text, undefined]),
  ])
  return { text: [...texts.keys(), ''].join('\n'), places: [...texts.values()] }
}

interface Told {
  readonly fallback: string
  readonly lines: readonly Line[]
  readonly withoutNamelessFiles: boolean
}

function ours({ fallback, lines, withoutNamelessFiles }: Told): string[] {
  return [
    ...(lines.some(({ call }) => call === 'clone3') ? [] : [`rule ${notThere} clone3`]),
    ...(allowing.includes(fallback) ? [] : [`above ${notThere}`]),
    ...(withoutNamelessFiles ? namelessFiles.map((call) => `first ${notThere} ${call}`) : []),
  ]
}

function actionWord(action: SeccompAction, errno: number | null | undefined): string {
  return action === 'errno' ? `errno:${errno ?? EPERM}` : action
}

function isFor(rule: SeccompRule, target: SeccompTarget): boolean {
  const { includes = {}, excludes = {} } = rule
  if (includes.arches?.length && !includes.arches.includes(dockerArch[target.arch])) return false
  if (excludes.arches?.includes(dockerArch[target.arch])) return false
  if (includes.caps && !includes.caps.every((name) => target.capabilities.includes(name))) return false
  if (excludes.caps?.some((name) => target.capabilities.includes(name))) return false
  if (includes.minKernel !== undefined && !isAtLeast(target.kernel, includes)) return false
  return excludes.minKernel === undefined || !isAtLeast(target.kernel, excludes)
}

function isAtLeast(kernel: string, filter: SeccompRuleFilter): boolean {
  const [major = 0, minor = 0] = kernel.split('.').map((part) => Number.parseInt(part, 10) || 0)
  const [leastMajor = 0, leastMinor = 0] = (filter.minKernel ?? '').split('.').map(Number)
  return major > leastMajor || (major === leastMajor && minor >= leastMinor)
}

function linesOf(rule: SeccompRule, place: string): Line[] {
  const action = actionWord(rule.action, rule.errnoRet ?? rule.errno)
  const named = rule.names?.map((call, index) => ({ call, field: `${place}.names[${index}]` })) ?? [{ call: rule.name ?? '', field: `${place}.name` }]
  return named.flatMap(({ call, field }) =>
    alternativesOf(rule.args ?? []).map((conditions) => ({
      place,
      field,
      call,
      action,
      conditions: conditions.map(conditionText).join(''),
      optional: rule.optional,
    })),
  )
}

/** All conditions of a rule must hold, but where one argument is compared twice each condition is an alternative: so runc reads the format. */
function alternativesOf(conditions: readonly SeccompCondition[]): (readonly SeccompCondition[])[] {
  const isRepeated = new Set(conditions.map((condition) => condition.index)).size < conditions.length
  return isRepeated ? conditions.map((condition) => [condition]) : [conditions]
}

function conditionText(condition: SeccompCondition): string {
  const text = ` ${condition.index} ${condition.op} ${condition.value}`
  return condition.op === 'masked-eq' ? `${text} ${condition.valueTwo}` : text
}

/** libseccomp lets a rule without conditions swallow the others of its call; a refusal would be lost without a word. */
function refuseContradictions(lines: readonly Line[], name: string): void {
  const unconditional = new Map<string, Line>()
  for (const line of lines) if (line.conditions === '' && !unconditional.has(line.call)) unconditional.set(line.call, line)
  for (const line of lines) {
    const other = unconditional.get(line.call)
    if (other === undefined || other.action === line.action) continue
    throw new SandboxError(
      'invalid',
      `seccomp profile ${name}: ${line.place} says ${line.action} to ${line.call}, ${other.place} says ${other.action} to it without condition`,
    )
  }
}
