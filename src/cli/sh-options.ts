import type { Command } from 'commander'
import { SandboxError } from '../contract/errors.js'
import { ownName } from './print.js'
import { addLimits, addNetwork, addProgram, addSandbox } from './run-options.js'
import type { RunFlags } from './run-flags.js'

const notes = (name: string): string => `
Without COMMAND it is a shell. Every key is the program's, Ctrl-C too; what it
prints reaches your terminal as it is. A fresh sandbox is gone when it ends,
with all that was written in it. SANDBOX, which ${name} create made, stays, and
takes of these flags only --env, --workdir, --user and --timeout.
Exit code: as of run.`

export function addSh(program: Command, finish: (code: number) => void): void {
  const command = program
    .command('sh')
    .summary('sit in a sandbox, at your own terminal')
    .description('Starts a shell, or another program, at your own terminal: in a fresh sandbox, or\nin one that lasts.')
    .argument('[SANDBOX|COMMAND]', 'a sandbox that lasts; behind -- a program for a fresh one')
    .argument('[ARG...]', 'its arguments, passed on as they are')
    .usage('[OPTIONS] [SANDBOX] [-- COMMAND [ARG...]]')
    .passThroughOptions()
  addProgram(command)
  addLimits(command, { timeout: 'any' })
  addNetwork(command)
  addSandbox(command)
  command
    .optionsGroup('What we say:')
    .option('-q, --quiet', 'no remarks about limits that are not enforced')
    .helpOption('-h, --help', 'print this')
    .addHelpText('after', notes(ownName()))
    .action(async (first: string | undefined, rest: string[], flags: RunFlags) => {
      const typed = (command.parent as Command & { readonly rawArgs: readonly string[] }).rawArgs
      if (first === undefined || typed.at(-rest.length - 2) === '--') {
        const { sh } = await import('./commands/sh.js')
        finish(await sh(first === undefined ? [] : [first, ...rest], flags))
        return
      }
      refuseFlagsOfFresh(flags)
      const { shIn } = await import('./commands/sh.js')
      finish(await shIn(first, rest, flags))
    })
}

const ofProgram = ['env', 'workdir', 'user', 'timeout', 'quiet']

/** What only a sandbox that is being made can be given would be passed over without a word. */
function refuseFlagsOfFresh(flags: RunFlags): void {
  const strange = Object.keys(flags).find((name) => !ofProgram.includes(name))
  if (strange === undefined) return
  const flag = `--${strange.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`
  throw new SandboxError('invalid', `${flag}: is for a fresh sandbox, and this one is there; a program for a fresh one stands behind --`, {
    hint: 'glovebox sh --help',
  })
}
