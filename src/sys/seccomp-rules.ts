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

interface Line {
  readonly place: string
  readonly call: string
  readonly action: string
  readonly conditions: string
  readonly optional: boolean
}

/**
 * The lines that `seccomp-compile` reads. Every entry point of another architecture (i386 and x32 on x86_64) kills the process:
 * a program that enters there would otherwise meet other numbers for the same calls.
 */
export function seccompLines(profile: SeccompProfile, target: SeccompTarget): string {
  const fallback = actionWord(profile.defaultAction, profile.defaultErrnoRet ?? profile.defaultErrno)
  const lines = (profile.syscalls ?? []).flatMap((rule, index) => (isFor(rule, target) ? linesOf(rule, `syscalls[${index}]`) : []))
  refuseContradictions(lines)
  // What says the same as the default adds nothing, and libseccomp refuses it.
  const told = lines.filter((line) => line.action !== fallback)
  const texts = new Set(told.map((line) => `${line.optional ? 'maybe' : 'rule'} ${line.action} ${line.call}${line.conditions}`))
  return [`default ${fallback}`, 'foreign kill-process', ...texts, ''].join('\n')
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
  return (rule.names ?? [rule.name ?? '']).flatMap((call) =>
    alternativesOf(rule.args ?? []).map((conditions) => ({ place, call, action, conditions: conditions.map(conditionText).join(''), optional: rule.optional })),
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
function refuseContradictions(lines: readonly Line[]): void {
  const unconditional = new Map<string, Line>()
  for (const line of lines) if (line.conditions === '' && !unconditional.has(line.call)) unconditional.set(line.call, line)
  for (const line of lines) {
    const other = unconditional.get(line.call)
    if (other === undefined || other.action === line.action) continue
    throw new SandboxError(
      'invalid',
      `seccomp profile: ${line.place} says ${line.action} to ${line.call}, ${other.place} says ${other.action} to it without condition`,
    )
  }
}
