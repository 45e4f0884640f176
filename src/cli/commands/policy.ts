import { availableParallelism, totalmem } from 'node:os'
import { policyInForce, readPolicy } from '../../compose.js'
import { auditPolicy, type Finding, severities } from '../../policy/audit.js'
import { effectivePolicy } from '../../policy/effective-policy.js'
import { parsePolicy } from '../../policy/policy-file.js'
import { exitCodes } from '../exit-codes.js'
import { type Colors, colorsFor, escapeControls, printJson } from '../print.js'
import { writeOut } from '../streams.js'
import { wrap } from '../wrap.js'

export interface PolicyFlags {
  readonly json?: true
}

const risky = 1

/** Names what is risky about a policy. Resolves to 1 when something is that nobody should grant unknowingly. */
export async function checkPolicy(nameOrPath: string, flags: PolicyFlags): Promise<number> {
  const policy = parsePolicy(readPolicy(nameOrPath))
  const findings = auditPolicy(policy, { memoryBytes: totalmem(), processors: availableParallelism() })
  const ok = findings.every(({ severity }) => severity !== 'high')
  if (flags.json) await printJson({ policy: nameOrPath, ok, findings })
  else await writeOut(`${[summary(nameOrPath, findings), ...findings.map((finding) => describe(finding, colorsFor(process.stdout)))].join('\n\n')}\n`)
  return ok ? exitCodes.ok : risky
}

/** Prints the policy that a run with it would be held to here. */
export async function showPolicy(nameOrPath: string | undefined, flags: PolicyFlags): Promise<number> {
  const document = effectivePolicy(policyInForce(nameOrPath === undefined ? undefined : readPolicy(nameOrPath)))
  if (flags.json) await printJson(document)
  else await writeOut(`${JSON.stringify(document, undefined, 2)}\n`)
  return exitCodes.ok
}

function summary(name: string, findings: readonly Finding[]): string {
  const counts = severities.map((severity) => `${findings.filter((finding) => finding.severity === severity).length} ${severity}`)
  return wrap(`${escapeControls(name)}: ${findings.length === 0 ? 'nothing risky was found' : counts.join(', ')}`, 2)
}

const indent = 8

/** How bad it is, where it stands, and in one sentence what is granted and what that may cost. */
function describe({ severity, field, grant, consequence }: Finding, colors: Colors): string {
  const color = { high: colors.red, medium: colors.yellow, low: colors.dim }[severity]
  const text = wrap(escapeControls(`${grant}: ${consequence}`), indent)
  return `${color(severity.padEnd(indent))}${colors.bold(wrap(escapeControls(field), indent))}\n${' '.repeat(indent)}${text}`
}
