import type { Command } from 'commander'
import { ownName } from './print.js'
import type { RunFlags } from './run-flags.js'
import { addLimits, addNetwork, addProgram, addSandbox } from './run-options.js'

const notes = (name: string): string => `
The language is that of -l, or of the file's name: .py .js .mjs .ts .sh
Without FILE and -c the code is what comes on stdin; at a terminal it is a
session instead, with history and a memory: ${name} code -l javascript
Several are run in order with one memory, until one fails. The value of a last
expression is printed; a figure is shown where the terminal can, and written
with --out. What is piped to us is what input() reads.

Exit code: 0, 1 when the code failed, that of exit(n), or
  124  it ran longer than --timeout
  125  we failed, or a flag is wrong
  130  it was interrupted
  137  it was killed: memory, or by you; stderr says which`

export interface CodeFlags extends RunFlags {
  readonly language?: string
  readonly code?: readonly string[]
  readonly out?: string
  readonly force?: true
}

const repeated = (value: string, all: readonly string[] = []): readonly string[] => [...all, value]

export function addCode(program: Command, finish: (code: number) => void): void {
  const command = program
    .command('code')
    .summary('run code and see its values, charts and files; or a session')
    .description('Runs code in a fresh sandbox and shows its values, figures and files; at a\nterminal, a session.')
    .argument('[FILE...]', 'the code; - is stdin')
    .usage('[OPTIONS] [FILE... | - | -c CODE]')
    .optionsGroup('The code:')
    .option('-l, --language <LANG>', 'python, javascript, typescript or bash (python)')
    .option('-c, --code <CODE>', 'code as it stands here; may be repeated', repeated)
    .option('--out <DIR>', 'write pictures, tables and files that it made there')
    .option('--force', 'with --out: replace files that are there')
  addProgram(command)
  addLimits(command, { timeout: '60s each' })
  addNetwork(command)
  addSandbox(command)
  command
    .optionsGroup('What we say:')
    .option('--json', 'print what happens as JSON, one object a line')
    .option('-q, --quiet', 'no remarks')
    .helpOption('-h, --help', 'print this')
    .addHelpText('after', notes(ownName()))
    .action(async (files: string[], flags: CodeFlags) => {
      const { code } = await import('./commands/code.js')
      finish(await code(files, flags))
    })
}
