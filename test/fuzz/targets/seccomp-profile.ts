import { readFileSync, readdirSync } from 'node:fs'
import { parseSeccompProfile } from '../../../src/sys/seccomp-profile.js'
import { seccompLines } from '../../../src/sys/seccomp-rules.js'
import { type FuzzTarget, holds, textIn, unlessRefused } from '../target.js'

const machine = { arch: 'x86_64', kernel: '6.1.0', capabilities: [] } as const
const own = new URL('../../../src/sys/profiles/', import.meta.url)

/** One of ours, cut down to a few rules: whole ones are too long to change well. */
function ownSeeds(): string[] {
  try {
    return readdirSync(own)
      .filter((file) => file.endsWith('.json'))
      .map((file) => JSON.parse(readFileSync(new URL(file, own), 'utf8')) as { syscalls?: unknown[] })
      .map((profile) => JSON.stringify({ ...profile, syscalls: profile.syscalls?.slice(-6) }))
  } catch {
    // Bundled: the folder is elsewhere.
    return []
  }
}

/** Profiles of seccomp, and the lines for the compiler that are made of them: one rule a line, of words that the compiler knows. */
export const target: FuzzTarget = {
  name: 'seccomp-profile',
  most: 4000,
  seeds: [
    '{"defaultAction":"SCMP_ACT_ERRNO","defaultErrnoRet":1,"architectures":["SCMP_ARCH_X86_64"],"syscalls":[{"names":["read","write"],"action":"SCMP_ACT_ALLOW"}]}',
    '{"defaultAction":"SCMP_ACT_ALLOW","syscalls":[{"names":["clone"],"action":"SCMP_ACT_ERRNO","errnoRet":38,"args":[{"index":0,"value":2114060288,"valueTwo":0,"op":"SCMP_CMP_MASKED_EQ"}]}]}',
    '{"defaultAction":"SCMP_ACT_KILL_PROCESS","archMap":[{"architecture":"SCMP_ARCH_X86_64","subArchitectures":["SCMP_ARCH_X86"]}],"syscalls":[{"names":["openat"],"action":"SCMP_ACT_ALLOW","args":null,"comment":"","includes":{"arches":["amd64"],"minKernel":"4.8"},"excludes":{"caps":["CAP_SYS_ADMIN"]}}]}',
    ...ownSeeds(),
  ],
  run(bytes) {
    const profile = unlessRefused(() => parseSeccompProfile(textIn(bytes), 'p.json'))
    if (!profile) return
    const lines = unlessRefused(() => seccompLines({ profile, target: machine, name: 'p.json', withoutNamelessFiles: true }))
    if (!lines) return
    for (const line of lines.text.split('\n').slice(0, -1))
      holds(/^(?:default|foreign|rule|maybe|known|[a-z-]+) [\x21-\x7e]+(?: [\x21-\x7e]+)*$/.test(line), `each line has words alone: ${JSON.stringify(line)}`)
  },
}
