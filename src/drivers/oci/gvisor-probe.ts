import { findProgram, readHostFacts } from '../../cell/facts.js'
import { lacks, limitsOfSandbox, terminalsOfSandbox } from '../../cell/gvisor/abilities.js'
import { wordsOfRunsc } from '../../cell/gvisor/words.js'
import type { Mechanism } from '../../cell/probe.js'
import { installCommand } from '../../sys/install-command.js'
import type { Gvisor } from './gvisor-platform.js'
import { judgesOf, type OciFacts } from './probe.js'

export function gvisorMechanism(path: () => string | undefined, gvisor: () => Promise<Gvisor>): Mechanism<OciFacts> {
  let version = ''
  return {
    ...judgesOf({ name: 'runsc' }),
    driver: 'oci:runsc',
    tier: 'gvisor',
    ownKernel: true,
    others: {
      ids: '65536 for the files of each cell, from 0x78000000 up; its kernel has nobody’s',
      terminals: terminalsOfSandbox,
    },
    runtime: 'runsc',
    wordsOf: wordsOfRunsc,
    lacks,
    readFacts: async (known) => {
      const program = await findProgram(path(), known)
      const platform =
        known === undefined && program !== undefined
          ? await gvisor().then(
              ({ platform: name }) => ` ${name}`,
              () => '',
            )
          : ''
      version = `${program?.version ?? ''}${platform}`
      return { ...readHostFacts(), program: program && { ...program, version }, install: installCommand('runsc') }
    },
    limits: (limits, cgroups) => limitsOfSandbox(limits, cgroups, version),
  }
}
