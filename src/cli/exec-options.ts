import type { Command } from 'commander'
import type { CpFlags } from './commands/cp.js'
import type { LogsFlags } from './commands/logs.js'
import type { ExecFlags } from './exec-flags.js'
import { ownName } from './print.js'
import { repeated } from './run-options.js'

type Finish = (code: number) => void

/** What is done inside a sandbox that is there: `exec`, `logs`, `cp`. */
export function addInside(program: Command, finish: Finish): void {
  addExec(program, finish)
  addLogs(program, finish)
  addCp(program, finish)
}

const execNotes = (name: string): string => `
COMMAND is run as it is, never by a shell; that would be: exec NAME -- sh -c …
Input that is piped or redirected to us is handed to it. Its time and its output
are bounded as the sandbox says; what --detach or --tty starts is bounded by the
sandbox's life alone. ${name} logs NAME shows what was left running.

Exit code: the program's own, or as of ${name} run; with --detach 0.`

function addExec(program: Command, finish: Finish): void {
  const command = program
    .command('exec')
    .summary('run a program in a sandbox that lasts')
    .description('Runs a program in a sandbox that lasts.')
    .argument('<SANDBOX>', 'its id, its name, or the beginning of its id')
    .argument('[COMMAND...]', 'the program with its arguments, passed on as they are')
    .usage('[OPTIONS] SANDBOX [--] COMMAND [ARG...]')
    .passThroughOptions()
    .option('-e, --env <NAME=VALUE>', 'set a variable; may be repeated', repeated)
    .option('-w, --workdir <DIR>', "where it starts (the sandbox's)")
    .option('-u, --user <USER>', "who it runs as: user or root (the sandbox's)")
    .option('--timeout <DURATION>', "wall time it may take (the sandbox's)")
    .option('-t, --tty', 'at your own terminal')
    .option('-d, --detach', 'leave it running, and print its pid')
    .option('--tag <NAME>', 'with --detach: a name for it')
    .option('--json', 'print one JSON object instead of the output')
    .helpOption('-h, --help', 'print this')
    .addHelpText('after', execNotes(ownName()))
  command.action(async (sandbox: string, argv: readonly string[], flags: ExecFlags) => {
    if (argv.length === 0 || (argv.length === 1 && argv[0] === '--')) {
      return command.error("error: missing required argument 'COMMAND'", { code: 'commander.missingArgument' })
    }
    const { exec } = await import('./commands/exec.js')
    finish(await exec(sandbox, argv, flags))
  })
}

const logsNotes = `
Of one process alone all bytes are shown as they are, of several every line with
the tag or pid of whose it is. What is kept of a process is the last it printed;
where something was dropped, that is said.`

function addLogs(program: Command, finish: Finish): void {
  program
    .command('logs')
    .summary('show what the processes in a sandbox printed')
    .description('Shows what processes printed that exec --detach left running, or one of them.')
    .argument('<SANDBOX>', 'its id, its name, or the beginning of its id')
    .argument('[PROCESS]', 'one process, by its tag or pid')
    .usage('[OPTIONS] SANDBOX [PROCESS]')
    .option('-f, --follow', 'and what they print from now on, until they end')
    .option('--json', 'print JSON, one object a line')
    .helpOption('-h, --help', 'print this')
    .addHelpText('after', logsNotes)
    .action(async (sandbox: string, process: string | undefined, flags: LogsFlags) => {
      const { logs } = await import('./commands/logs.js')
      finish(await logs(sandbox, process, flags))
    })
}

const cpNotes = (name: string): string => `
At least one of SRC and DST is SANDBOX:PATH; a relative PATH is below its
working folder. A local name with a colon before any slash is written ./a:b
What is copied into a folder that is there keeps its name, as with cp; SRC/. is
what is in it. - is stdin or stdout: a file, or a tar archive where the other
end is a folder:
  ${name} cp data NAME:/workspace
  ${name} cp NAME:results.csv .
  tar c src | ${name} cp - NAME:/workspace/

Nothing local is replaced without --force. Links that lead out of what is
copied, FIFOs and devices stay behind, and are named.`

function addCp(program: Command, finish: Finish): void {
  program
    .command('cp')
    .summary('copy files and folders into a sandbox, or out of it')
    .description('Copies files and folders into a sandbox, out of it, or from one to another.')
    .argument('<SRC>', 'SANDBOX:PATH, a local path, or -')
    .argument('<DST>', 'the same')
    .usage('[OPTIONS] SRC DST')
    .option('-u, --user <USER>', "whose rights are used inside: user or root (the sandbox's)")
    .option('-f, --force', 'replace local files')
    .option('--json', 'print one JSON object')
    .option('-q, --quiet', 'no progress')
    .helpOption('-h, --help', 'print this')
    .addHelpText('after', cpNotes(ownName()))
    .action(async (from: string, to: string, flags: CpFlags) => {
      const { cp } = await import('./commands/cp.js')
      finish(await cp(from, to, flags))
    })
}
