import type { Command } from 'commander'
import type { CreateFlags } from './create-flags.js'
import { ownName } from './print.js'
import { addBoundary, addFiles, addHosts, addLimits, addProgram, repeated } from './run-options.js'

const notes = (name: string): string => `
Prints the id of the sandbox. It is kept by the server that GLOVEBOX_URL names,
or else by a daemon of yours, which is started when there is none and goes when
it holds nothing. By its id, its name, or the beginning of its id:
  ${name} exec NAME -- COMMAND, ${name} sh NAME, ${name} cp FILE NAME:PATH
What is said of the program holds for all that run in it. Limits, mounts and the
network: as of ${name} run.

Exit code: 0, or 125 when it cannot be had.`

export function addCreate(program: Command, finish: (code: number) => void): void {
  const command = program
    .command('create')
    .summary('make a sandbox that lasts, and print its id')
    .description('Makes a sandbox that lasts until it is removed or its lifetime is over.')
    .usage('[OPTIONS]')
    .optionsGroup('Its life:')
    .option('--lifetime <DURATION>', 'how long it lives (1h)')
    .option('--idle <DURATION>', 'how long nothing may happen in it (any)')
    .option('--on-expiry <ACT>', 'what then happens: close or pause (close)')
    .option('--from <SNAPSHOT>', 'begin with these files, by id or name')
    .option('--agent <NAME>', 'whom it serves')
    .option('--metadata <KEY=VALUE>', 'anything to find it by; may be repeated', repeated)
  addFiles(command)
  addBoundary(command)
  addProgram(command)
  addLimits(command, { timeout: '60s each' })
  addHosts(command)
  command
    .optionsGroup('What we say:')
    .option('--json', 'print all about it as one JSON object')
    .option('-q, --quiet', 'no remarks about limits that are not enforced')
    .helpOption('-h, --help', 'print this')
    .addHelpText('after', notes(ownName()))
    .action(async (flags: CreateFlags) => {
      const { create } = await import('./commands/create.js')
      finish(await create(flags))
    })
}
