import { readFileSync } from 'node:fs'
import { Command, CommanderError } from 'commander'
import { SandboxError } from '../contract/errors.js'
import type { DemoFlags } from './commands/demo.js'
import { exitCodes, signalExitCode } from './exit-codes.js'
import { Stopped } from './interrupts.js'
import { printFailure } from './print.js'
import type { RunFlags } from './run-flags.js'
import { flushOutput } from './streams.js'

const runNotes = `
COMMAND is run as it is, never by a shell; for one: glovebox run -- sh -c 'a | b'
A limit that you state and that cannot be enforced here is refused; see: glovebox doctor

Exit code: the program's own; 124 timed out, 125 our failure, 126 not executable,
127 not found, 128+n ended by signal n, 137 killed, out of memory or output limit.`

/** Reports the exit code of whichever command was run. */
type Finish = (code: number) => void

function buildProgram(finish: Finish): Command {
  const program = new Command('glovebox')
    .description('Runs code that nobody has vouched for, and hands back exactly what it did.')
    .version(readVersion(), '-V, --version', 'print the version')
    .helpOption('-h, --help', 'print this')
    .enablePositionalOptions()
  addRun(program, finish)
  addDoctor(program, finish)
  addDemo(program, finish)
  for (const command of [program, ...program.commands]) {
    command
      .exitOverride()
      .configureOutput({ outputError: () => undefined })
      .configureHelp({ helpWidth: 80 })
  }
  return program
}

function addRun(program: Command, finish: Finish): void {
  program
    .command('run')
    .description('run one program in a fresh sandbox that is gone afterwards')
    .argument('<command>', 'the program')
    .argument('[args...]', 'its arguments, passed on as they are')
    .usage('[options] [--] COMMAND [ARG...]')
    .passThroughOptions()
    .option('-e, --env <NAME=VALUE>', 'set a variable; may be repeated', (value: string, all: string[]) => [...all, value], [])
    .option('-w, --workdir <DIR>', 'where it starts (/workspace)')
    .option('-u, --user <USER>', 'who it runs as: user, root (user)')
    .option('-m, --memory <SIZE>', 'memory it may use (512m)')
    .option('--cpus <NUMBER>', 'CPUs it may use (0.5)')
    .option('--timeout <DURATION>', 'wall time it may take (60s)')
    .option('--disk <SIZE>', 'what it may write to files (100m)')
    .option('--pids <NUMBER>', 'processes it may have at once (64)')
    .option('--output <SIZE>', 'what it may print (10m)')
    .option('--driver <NAME>', 'build the cell with this driver only')
    .option('--min-tier <TIER>', 'accept no weaker boundary (process)')
    .option('--template <NAME>', 'root filesystem: host, python, node, shell (host)')
    .option('--name <NAME>', 'a name for the sandbox')
    .option('--json', 'print one JSON object instead of the output')
    .option('-q, --quiet', 'no remarks about limits that are not enforced')
    .helpOption('-h, --help', 'print this')
    .addHelpText('after', runNotes)
    .action(async (command: string, args: string[], flags: RunFlags) => {
      const { run } = await import('./commands/run.js')
      finish(await run([command, ...args], flags))
    })
}

function addDoctor(program: Command, finish: Finish): void {
  program
    .command('doctor')
    .description('show what can be enforced on this machine, and what is in the way')
    .option('--json', 'print one JSON object')
    .helpOption('-h, --help', 'print this')
    .addHelpText('after', '\nExit code: 0 when sandboxes can be made here, otherwise 125.')
    .action(async (flags: { readonly json?: true }) => {
      const { doctor } = await import('./commands/doctor.js')
      finish(await doctor({ json: flags.json === true, version: readVersion() }))
    })
}

function addDemo(program: Command, finish: Finish): void {
  program
    .command('demo')
    .description('watch a few programs do as they should, and a few be refused')
    .option('--driver <NAME>', 'build the cells with this driver only')
    .option('--min-tier <TIER>', 'accept no weaker boundary (process)')
    .option('--json', 'print one JSON object')
    .helpOption('-h, --help', 'print this')
    .addHelpText('after', '\nExit code: 0 when all went as it should, 1 when a refusal did not happen.')
    .action(async (flags: DemoFlags) => {
      const { demo } = await import('./commands/demo.js')
      finish(await demo(flags))
    })
}

function readVersion(): string {
  const manifest: unknown = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'))
  return (manifest as { readonly version: string }).version
}

/** Commander's complaint in our form: one line with its suggestion, and the help as the next act. */
function usageError(error: CommanderError, args: readonly string[]): SandboxError {
  const [first = '', suggestion] = error.message.replace(/^error: /, '').split('\n')
  const message = suggestion === undefined ? first : `${first} ${suggestion.toLowerCase()}`
  const command = ['run', 'doctor', 'demo'].find((name) => name === args[0])
  return new SandboxError('invalid', message, { hint: command === undefined ? 'glovebox --help' : `glovebox ${command} --help` })
}

/** Whether our own flags ask for JSON; what follows `--` is the program's. */
function asksForJson(args: readonly string[]): boolean {
  const end = args.indexOf('--')
  return args.slice(0, end === -1 ? undefined : end).includes('--json')
}

async function main(args: readonly string[]): Promise<number> {
  let code: number = exitCodes.ok
  const program = buildProgram((result) => {
    code = result
  })
  if (args.length === 0) {
    program.outputHelp()
    return exitCodes.ok
  }
  try {
    await program.parseAsync(args, { from: 'user' })
    return code
  } catch (error) {
    // Told to stop: what our reader has not taken yet must not hold us.
    if (error instanceof Stopped) process.exit(signalExitCode(error.signal))
    if (error instanceof CommanderError) {
      return error.exitCode === 0 ? exitCodes.ok : printFailure(usageError(error, args), { json: asksForJson(args) })
    }
    return printFailure(error, { json: asksForJson(args) })
  }
}

// A reader that goes away is noticed where it matters, by the write that fails; without listeners it would be a crash instead.
process.stdout.on('error', () => undefined)
process.stderr.on('error', () => undefined)

void main(process.argv.slice(2)).then(async (code) => {
  await flushOutput()
  process.exit(code)
})
