import { ensure, ensureSame, text } from './check.js'
import { until } from './guest.js'
import type { HostSnapshot, Subject, SubjectSandbox } from './subject.js'

/** What is there now and was not before, one line per thing. */
export function leftoversOf(before: HostSnapshot, after: HostSnapshot): string[] {
  return [
    ...added(processLines(before), processLines(after)).map((line) => `process ${line}`),
    ...added(before.mounts, after.mounts).map((line) => `mount ${line}`),
    ...added(before.cgroups, after.cgroups).map((line) => `cgroup ${line}`),
    ...added(before.files, after.files).map((line) => `file ${line}`),
    ...added(before.descriptors, after.descriptors).map((line) => `descriptor ${line}`),
  ]
}

/** Does something and then looks whether anything of it is left. */
export async function ensureLeavesNothing(subject: Subject, act: () => Promise<void>): Promise<void> {
  await warmUp(subject)
  const before = await subject.host.snapshot()
  await act()
  const left = async (): Promise<string[]> => leftoversOf(before, await subject.host.snapshot())
  // A socket that was just destroyed gives its descriptor back on a later turn of the loop.
  await until(async () => !(await left()).some((line) => line.startsWith('descriptor ')), 2000)
  ensureSame(await left(), [], 'what is left')
}

type Runner = Pick<SubjectSandbox, 'run'>

/** Of all processes that there are; those of a kernel of their own are looked for inside. */
export async function commandsOf({ host, probe }: Subject, sandbox: Runner): Promise<string[]> {
  if (probe.ownKernel) return text((await sandbox.run(['sh', '-c', everyCommand])).stdout).split('\n')
  return (await host.snapshot()).processes.map(({ command }) => command)
}

const everyCommand = 'for file in /proc/[0-9]*/cmdline; do tr "\\000" " " <"$file" 2>/dev/null; echo; done'

export async function ensureAppears(subject: Subject, marker: string, sandbox: Runner): Promise<void> {
  const appears = await until(async () => (await commandsOf(subject, sandbox)).some((command) => command.includes(marker)))
  ensure(appears, 'the marked process must be visible while it runs', marker)
}

/** No process with this marker wherever it went; where the host does not see them, none in the sandbox either, as long as it is there. */
export async function ensureNoProcess(subject: Subject, marker: string, sandbox?: Runner): Promise<void> {
  const { processes } = await subject.host.snapshot()
  const inside = subject.probe.ownKernel && sandbox ? await commandsOf(subject, sandbox) : []
  ensureSame(
    inside.filter((command) => command.includes(marker)),
    [],
    'the processes that survived inside',
  )
  ensureSame(
    processes.filter(({ command }) => command.includes(marker)).map(({ pid, command }) => `${pid} ${command}`),
    [],
    'the processes that survived',
  )
}

/** What is made once and kept, such as caches, is not left behind by the case that happens to come first. */
async function warmUp(subject: Subject): Promise<void> {
  const sandbox = await subject.open()
  await sandbox.run(['true'])
  await sandbox.close()
}

function processLines({ processes }: HostSnapshot): string[] {
  return processes.filter(({ ofEngine }) => ofEngine).map(({ pid, command }) => `${pid} ${command}`)
}

/** Two equal lines are two things. */
function added(before: readonly string[], after: readonly string[]): string[] {
  const known = new Map<string, number>()
  for (const line of before) known.set(line, (known.get(line) ?? 0) + 1)
  return after.filter((line) => {
    const left = known.get(line) ?? 0
    known.set(line, left - 1)
    return left <= 0
  })
}
