import type { Command } from 'commander'
import { SandboxError } from '../contract/errors.js'
import { ownName } from './print.js'
import type { RunFlags } from './run-flags.js'

const notes = (name: string): string => `
COMMAND is run as it is, never by a shell; that would be: run -- sh -c 'a | b'
Input that is piped or redirected to us is handed to it. A limit that you state
and that cannot be enforced here is refused; ${name} doctor says which can.
A mount is at /mnt/NAME and read-only unless stated; MODE is ro, rw or overlay,
which lets it write without touching SRC. A colon in a path is \\:
*.example.org is any host below example.org, not itself; * any public host. What
is denied is told on stderr. Private addresses are denied always.
With --here the folder stays as it is: what changed is shown on stderr, then
${name} apply takes it over and ${name} drop forgets it.

Exit code: the program's own, or
  124  it ran longer than --timeout, or computed longer than --cpu-time
  125  we failed, or a flag is wrong
  126  COMMAND is not executable, 127 there is none
  137  it was killed: memory, output limit, or by you; stderr says which
  128+n  signal n ended it`

export const repeated = (value: string, all: readonly string[] = []): readonly string[] => [...all, value]

/** Of two the last would win without a word, and it may be the wider one. */
const once =
  (flag: string) =>
  (value: string, before?: string): string => {
    if (before !== undefined) throw new SandboxError('invalid', `${flag}: is given twice; a run is held to one`, { hint: 'glovebox run --help' })
    return value
  }

export function addRun(program: Command, finish: (code: number) => void): void {
  const command = program
    .command('run')
    .summary('run one program in a fresh sandbox that is gone afterwards')
    .description('Runs one program in a fresh sandbox that is gone afterwards.')
    .argument('[COMMAND]', 'the program; of a template that was made from an image, its own')
    .argument('[ARG...]', 'its arguments, passed on as they are')
    .usage('[OPTIONS] [--] COMMAND [ARG...]')
    .passThroughOptions()
  addProgram(command)
  command.option('--here', 'this folder as /workspace; changes are kept aside')
  addLimits(command, { timeout: '60s' })
  addNetwork(command)
  addSandbox(command)
  command
    .optionsGroup('What we say:')
    .option('--json', 'print one JSON object instead of the output')
    .option('-q, --quiet', 'no remarks about limits that are not enforced')
    .helpOption('-h, --help', 'print this')
    .addHelpText('after', notes(ownName()))
    .action(async (name: string | undefined, args: string[], flags: RunFlags) => {
      const own = name === undefined ? await imageCommand(flags.template) : [name, ...args]
      if (own === undefined) return command.error("error: missing required argument 'COMMAND'", { code: 'commander.missingArgument' })
      const { run } = await import('./commands/run.js')
      finish(await run(own, flags))
    })
}

export function addProgram(command: Command): void {
  command
    .optionsGroup('The program:')
    .option('-e, --env <NAME=VALUE>', 'set a variable; may be repeated', repeated)
    .option('-w, --workdir <DIR>', 'where it starts (/workspace)')
    .option('-u, --user <USER>', 'who it runs as: user or root (user)')
    .option('--command <NAME>', 'allow only this program; may be repeated (all)', repeated)
}

export function addSandbox(command: Command): void {
  addFiles(command)
  command
    .option('--upload <SRC[:DST]>', 'copy a file or folder into it before; may be repeated', repeated)
    .option('--download <SRC[:DST]>', 'copy a file or folder out of it after, SRC/ into one that is there; may be repeated', repeated)
  addBoundary(command)
  command.option('--receipt <FILE>', 'write the signed record of what was enforced')
}

/** What the programs of a sandbox see. */
export function addFiles(command: Command): void {
  command
    .optionsGroup('The sandbox:')
    .option('--template <NAME>', 'its files: host, python, node, shell, or one that was built (host)')
    .option('--root <MODE>', 'its root: readonly or overlay (readonly)')
    .option('--mount <SRC[:DST][:MODE]>', 'show it a file or folder; may be repeated', repeated)
}

/** What holds them. */
export function addBoundary(command: Command): void {
  command
    .option('--seccomp <FILE>', 'system calls by this Docker profile (ours)')
    .option('--policy <FILE|PRESET>', 'caps and defaults; or strict, data (default)', once('--policy'))
    .option('--driver <NAME>', 'build it with this driver only')
    .option('--min-tier <TIER>', 'accept no weaker boundary (process)')
    .option('--name <NAME>', 'a name for it')
}

export function addNetwork(command: Command): void {
  addHosts(command)
  command
    .option('--net-log <FILE>', 'write down each connection and request, as JSON, one a line')
    .option('--learn-network', 'let it reach everything public, and say what it needed')
}

/** Where it may go. */
export function addHosts(command: Command): void {
  command
    .optionsGroup('Its network (none):')
    .option('--allow <HOST[:PORT]>', 'let it reach this host, at 80 and 443 unless stated; may be repeated', repeated)
    .option('--block <HOST[:PORT]>', 'but not this one; may be repeated', repeated)
}

export function addLimits(command: Command, { timeout }: { readonly timeout: string }): void {
  command
    .optionsGroup('Its limits:')
    .option('-m, --memory <SIZE>', 'memory it may use (512m)')
    .option('--cpus <NUMBER>', 'CPUs it may use (0.5)')
    .option('--cpu-time <DURATION>', 'processor time it may take (as --timeout allows)')
    .option('--timeout <DURATION>', `wall time it may take (${timeout})`)
    .option('--disk <SIZE>', 'what it may write to files (100m)')
    .option('--inodes <NUMBER>', 'files it may make (one per 4k of --disk)')
    .option('--file-size <SIZE>', 'how large one file may be (as --disk)')
    .option('--open-files <NUMBER>', 'open files of a process, 1024 at first (4096)')
    .option('--pids <NUMBER>', 'processes it may have at once (64)')
    .option('--read-rate <SIZE>', 'what it may read from disks a second (any)')
    .option('--write-rate <SIZE>', 'what it may write to disks a second (any)')
    .option('--output <SIZE>', 'what it may print (10m)')
}

/** What an image means to be run: only when nothing else is said. */
async function imageCommand(template: string | undefined): Promise<readonly string[] | undefined> {
  if (template === undefined) return undefined
  const { commandOf } = await import('./commands/template.js')
  return commandOf(template)
}
