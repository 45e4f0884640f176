import { readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { Command, CommanderError } from 'commander'
import { reworded, SandboxError } from '../contract/errors.js'
import { addAudit } from './audit-commands.js'
import { addBench } from './bench-options.js'
import { addChanges } from './change-commands.js'
import { addCode } from './code-options.js'
import { addCreate } from './create-options.js'
import { addInside } from './exec-options.js'
import { addLasting } from './lasting-options.js'
import { findCalled, hasJsonFlag, withoutHelpCommand, withSubcommands } from './command-path.js'
import type { DemoFlags } from './commands/demo.js'
import { exactArguments, refuseChangedArguments } from './exact-arguments.js'
import { exitCodes, signalExitCode } from './exit-codes.js'
import { Stopped } from './interrupts.js'
import { prepareLeaving } from './leaving.js'
import { addGc } from './gc-options.js'
import { addKeys } from './keys-commands.js'
import { addPolicy } from './policy-commands.js'
import { addMcp } from './mcp-options.js'
import { ownName, printFailure } from './print.js'
import { addReceipt } from './receipt-commands.js'
import { addRun } from './run-options.js'
import { addServe } from './serve-options.js'
import { addSh } from './sh-options.js'
import { addPackages } from './packages-commands.js'
import { addSnapshots } from './snapshots-commands.js'
import { addTemplate } from './template-commands.js'
import { addTenants } from './tenants-commands.js'
import { addVerify } from './verify-options.js'
import { flushOutput, OutputRefused, ReaderGone, writeOut } from './streams.js'

const examples = (name: string): string => `
Examples:
  ${name} demo
  ${name} run -- python3 -c 'print(6*7)'
  ${name} code -c 'sum(range(10))'
  ${name} run --timeout 5s --memory 128m -- sh -c 'wc -c' < some.file`

/** Reports the exit code of whichever command was run. */
type Finish = (code: number) => void

interface Called {
  readonly args: readonly string[]
  readonly finish: Finish
  /** Takes the help or the version, which are not written before somebody can wait for it. */
  readonly print: (text: string) => void
}

/** In the order of the help. */
const adders: readonly { readonly names: readonly string[]; readonly add: (program: Command, finish: Finish) => void }[] = [
  { names: ['run'], add: addRun },
  { names: ['sh'], add: addSh },
  { names: ['code'], add: addCode },
  { names: ['create'], add: addCreate },
  { names: ['exec', 'logs', 'cp'], add: addInside },
  { names: ['ls', 'info', 'stats', 'pause', 'resume', 'snapshot', 'fork', 'url', 'rm'], add: addLasting },
  { names: ['mcp'], add: addMcp },
  { names: ['serve'], add: addServe },
  { names: ['doctor'], add: addDoctor },
  { names: ['demo'], add: addDemo },
  { names: ['verify'], add: (program, finish) => addVerify(program, { finish, version: readVersion }) },
  { names: ['bench'], add: (program, finish) => addBench(program, { finish, version: readVersion }) },
  { names: ['daemon'], add: addDaemon },
  { names: ['gc'], add: addGc },
  { names: ['changes', 'apply', 'drop'], add: addChanges },
  { names: ['policy'], add: addPolicy },
  { names: ['receipt'], add: addReceipt },
  { names: ['snapshots'], add: addSnapshots },
  { names: ['packages'], add: addPackages },
  { names: ['template'], add: addTemplate },
  { names: ['keys'], add: addKeys },
  { names: ['tenants'], add: addTenants },
  { names: ['audit'], add: addAudit },
]

function buildProgram({ args, finish, print }: Called): Command {
  const program = new Command(ownName())
    .description('Runs code that nobody has vouched for, and hands back exactly what it did.')
    .version(versionFor(args), '-V, --version', 'print the version')
    .helpOption('-h, --help', 'print this')
    .helpCommand('help [COMMAND]', 'print the help of a command')
    .usage('COMMAND [OPTIONS]')
    .addHelpText('after', examples(ownName()))
    .enablePositionalOptions()
    .hook('preAction', () => refuseChangedArguments(args))
  const [called = ''] = args
  const ofCalled = adders.filter(({ names }) => names.includes(called))
  // Describing all of them takes longer than some of them do; help, and a word that is none, need all.
  for (const { add } of ofCalled.length > 0 ? ofCalled : adders) add(program, finish)
  for (const command of withSubcommands(program)) {
    command
      .exitOverride()
      .configureOutput({ writeOut: print, writeErr: () => undefined, outputError: () => undefined })
      .configureHelp({ helpWidth: 80, visibleArguments: () => [], subcommandTerm: (subcommand) => subcommand.name() })
  }
  return program
}

function addDoctor(program: Command, finish: Finish): void {
  program
    .command('doctor')
    .summary('show what can be enforced here, and what is in the way')
    .description('Shows what can be enforced on this machine, and what is in the way.')
    .usage('[OPTIONS]')
    .option('--json', 'print one JSON object')
    .helpOption('-h, --help', 'print this')
    .addHelpText('after', '\nExit code: 0 when sandboxes can be made here, otherwise 125.')
    .action(async (flags: { readonly json?: true }) => {
      const { doctor } = await import('./commands/doctor.js')
      finish(await doctor({ json: flags.json === true, version: readVersion() }))
    })
}

/** Started by us, and by nobody else. */
function addDaemon(program: Command, finish: Finish): void {
  program.command('daemon', { hidden: true }).action(async () => {
    const { daemon } = await import('./commands/daemon.js')
    finish(await daemon(readVersion()))
  })
}

function addDemo(program: Command, finish: Finish): void {
  program
    .command('demo')
    .summary('watch a few programs work, and a few be refused')
    .description('Runs a few programs that work and a few that are refused, with what was seen\nand how long each took beside a plain spawn.')
    .usage('[OPTIONS]')
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

/** Read only where it may be asked for: by a first word that is a flag. */
function versionFor([first]: readonly string[]): string {
  return first?.startsWith('-') ? readVersion() : ''
}

function readVersion(): string {
  const manifest: unknown = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'))
  return (manifest as { readonly version: string }).version
}

/** Commander's complaint in our form: one line with its suggestion, and the help as the next act. */
function usageError(error: CommanderError, args: readonly string[], program: Command): SandboxError {
  const [first = '', suggestion] = error.message.replace(/^error: /, '').split('\n')
  const message = suggestion === undefined ? first : `${first} ${suggestion.toLowerCase()}`
  return new SandboxError('invalid', message, { hint: ['glovebox', ...findCalled(program, args).path, '--help'].join(' ') })
}

/** Flags of `run` are those of other commands too: whose help tells of them is known here. */
function asCalled(error: unknown, [command, ...path]: readonly string[]): unknown {
  if (!(error instanceof SandboxError) || error.hint !== 'glovebox run --help' || command === undefined) return error
  return reworded(error, error.message, ['glovebox', command, ...path, '--help'].join(' '))
}

const lastWordsMs = 1000

/** What was asked for as JSON is one object however it ends; but a reader that takes nothing must not hold us. */
async function printStopped({ message }: Stopped): Promise<void> {
  await Promise.race([printFailure(new SandboxError('closed', message), { json: true }).catch(() => undefined), sleep(lastWordsMs)])
}

async function dispatch(given: readonly string[]): Promise<number> {
  const args = given[0] === 'apply' ? exactArguments(given) : given
  let code: number = exitCodes.ok
  let printed = ''
  const program = buildProgram({
    args,
    finish: (result) => {
      code = result
    },
    print: (text) => {
      printed += text
    },
  })
  const asked = withoutHelpCommand(args, program)
  try {
    await program.parseAsync(asked, { from: 'user' })
    return code
  } catch (error) {
    const json = withSubcommands(program).some((command) => command.opts().json === true) || hasJsonFlag(program, asked)
    if (error instanceof Stopped && json) await printStopped(error)
    if (error instanceof Stopped || error instanceof ReaderGone || error instanceof OutputRefused) throw error
    if (!(error instanceof CommanderError)) return printFailure(asCalled(error, findCalled(program, asked).path), { json })
    if (error.exitCode !== 0) return printFailure(usageError(error, asked, program), { json })
    await writeOut(printed)
    return exitCodes.ok
  }
}

const leaving = prepareLeaving()

async function main(args: readonly string[]): Promise<number> {
  try {
    return await dispatch(args)
  } catch (error) {
    // Told to stop: what our reader has not taken yet must not hold us.
    if (error instanceof Stopped) leaving.exit(signalExitCode(error.signal))
    if (error instanceof ReaderGone) return signalExitCode('SIGPIPE')
    return printFailure(error, { json: false })
  }
}

// A reader that goes away is noticed where it matters, by the write that fails; without listeners it would be a crash instead.
process.stdout.on('error', () => undefined)
process.stderr.on('error', () => undefined)

void main(process.argv.slice(2)).then(async (code) => {
  await flushOutput()
  leaving.exit(code)
})
