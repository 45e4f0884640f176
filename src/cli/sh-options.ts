import type { Command } from 'commander'
import { addLimits, addNetwork, addProgram, addSandbox } from './run-options.js'
import type { RunFlags } from './run-flags.js'

const notes = `
Without COMMAND it is a shell. Every key is the program's, Ctrl-C too; what it
prints reaches your terminal as it is. The sandbox is gone when it ends, with
all that was written in it. Exit code: as of run.`

export function addSh(program: Command, finish: (code: number) => void): void {
  const command = program
    .command('sh')
    .summary('sit in a fresh sandbox, at your own terminal')
    .description('Starts a shell, or another program, in a fresh sandbox at your own terminal.')
    .argument('[COMMAND]', 'the program')
    .argument('[ARG...]', 'its arguments, passed on as they are')
    .usage('[OPTIONS] [--] [COMMAND [ARG...]]')
    .passThroughOptions()
  addProgram(command)
  addLimits(command, { timeout: 'any' })
  addNetwork(command)
  addSandbox(command)
  command
    .optionsGroup('What we say:')
    .option('-q, --quiet', 'no remarks about limits that are not enforced')
    .helpOption('-h, --help', 'print this')
    .addHelpText('after', notes)
    .action(async (name: string | undefined, args: string[], flags: RunFlags) => {
      const { sh } = await import('./commands/sh.js')
      finish(await sh(name === undefined ? [] : [name, ...args], flags))
    })
}
