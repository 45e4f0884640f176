/** Opens a cell of a runtime with limits, says what the kernel tells of it, and lets a program exceed its memory. */
import { createOciDriver } from '../../../../src/drivers/oci/driver.js'
import { openGuest } from '../../bwrap/open-guest.js'

const limits = { memoryBytes: 64 * 2 ** 20, processes: 16, cpus: 0.5 }
const found: Record<string, unknown> = {}
{
  await using guest = await openGuest({ driver: createOciDriver(process.argv[2] as 'runc'), limits })
  const [posture] = await guest.cell.posture({ kind: 'cell' })
  for (const { control, value } of posture?.observations ?? []) {
    if (['uid-map', 'limit.memory', 'limit.processes', 'limit.cpus'].includes(control)) found[control] = value
    if (control !== 'warden') continue
    const { cgroup, capabilities } = value as { cgroup: string; capabilities: unknown }
    Object.assign(found, { 'warden.cgroup': cgroup, 'warden.capabilities': capabilities })
  }
  const said = await guest.sh('echo here')
  const { exit, counts } = await guest.run("exec python3 -c 'bytearray(200 << 20)'")
  const ended = exit.kind === 'signaled' && exit.code === 9 && (counts.hits.memory ?? 0) > 0 ? 'killed for its memory' : JSON.stringify({ exit, counts })
  process.stdout.write(JSON.stringify({ uid: process.getuid?.(), found, said, ended }))
}
