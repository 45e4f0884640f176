import type { Command } from 'commander'
import type { InfoFlags } from './commands/info.js'
import type { LifeFlags, PauseFlags } from './commands/life.js'
import type { LsFlags } from './commands/ls.js'
import type { RmFlags } from './commands/rm.js'
import type { ForkFlags, SnapshotFlags } from './commands/snapshot.js'
import type { StatsFlags } from './commands/stats.js'
import type { UrlFlags } from './commands/url.js'
import { repeated } from './run-options.js'

type Finish = (code: number) => void

const which = 'its id, its name, or the beginning of its id'

/** What is done with sandboxes that last, as wholes. */
export function addLasting(program: Command, finish: Finish): void {
  addLs(program, finish)
  addInfo(program, finish)
  addStats(program, finish)
  addPause(program, finish)
  addResume(program, finish)
  addSnapshot(program, finish)
  addFork(program, finish)
  addUrl(program, finish)
  addRm(program, finish)
}

/** A command of ours with what all of them have. */
function described(program: Command, name: string, words: { readonly summary: string; readonly description: string; readonly usage: string }): Command {
  return program.command(name).summary(words.summary).description(words.description).usage(words.usage).helpOption('-h, --help', 'print this')
}

function addFilters(command: Command): Command {
  return command
    .option('--name <NAME>', 'only those with this name')
    .option('--agent <NAME>', 'only those that serve this agent')
    .option('--metadata <KEY=VALUE>', 'only those with this; may be repeated', repeated)
}

function addLs(program: Command, finish: Finish): void {
  const command = described(program, 'ls', { summary: 'list the sandboxes that last', description: 'Lists the sandboxes that last.', usage: '[OPTIONS]' })
  addFilters(command)
    .option('-q, --quiet', 'print only ids')
    .option('--json', 'print one JSON object')
    .action(async (flags: LsFlags) => {
      const { ls } = await import('./commands/ls.js')
      finish(await ls(flags))
    })
}

function addInfo(program: Command, finish: Finish): void {
  const description = 'Shows what a sandbox is, what it used, and the processes that are kept in it.'
  described(program, 'info', { summary: 'show what a sandbox is and what runs in it', description, usage: '[OPTIONS] SANDBOX' })
    .argument('<SANDBOX>', which)
    .option('--receipt <FILE>', 'write the signed record of what is enforced now')
    .option('--json', 'print one JSON object')
    .action(async (sandbox: string, flags: InfoFlags) => {
      const { info } = await import('./commands/info.js')
      finish(await info(sandbox, flags))
    })
}

function addStats(program: Command, finish: Finish): void {
  const description = 'Shows what sandboxes use, beside what each may: processor, memory, processes,\ndisk and network. Without SANDBOX all there are.'
  described(program, 'stats', { summary: 'show what sandboxes use, beside their limits', description, usage: '[OPTIONS] [SANDBOX...]' })
    .argument('[SANDBOX...]', which)
    .option('-f, --follow', 'again every second, until it is stopped')
    .option('--json', 'print one JSON object; with --follow one a line')
    .action(async (sandboxes: readonly string[], flags: StatsFlags) => {
      const { stats } = await import('./commands/stats.js')
      finish(await stats(sandboxes, flags))
    })
}

function addPause(program: Command, finish: Finish): void {
  const description = 'Lets everything in sandboxes stand still, their times too, until resume.'
  described(program, 'pause', { summary: 'let everything in a sandbox stand still', description, usage: '[OPTIONS] SANDBOX...' })
    .argument('<SANDBOX...>', which)
    .option('--no-memory', 'end what runs in it, and keep only its files')
    .option('--json', 'print one JSON object')
    .action(async (sandboxes: readonly string[], flags: PauseFlags) => {
      const { pause } = await import('./commands/life.js')
      finish(await pause(sandboxes, flags))
    })
}

function addResume(program: Command, finish: Finish): void {
  const description = 'Lets sandboxes go on that stand still.'
  described(program, 'resume', { summary: 'let it go on', description, usage: '[OPTIONS] SANDBOX...' })
    .argument('<SANDBOX...>', which)
    .option('--json', 'print one JSON object')
    .action(async (sandboxes: readonly string[], flags: LifeFlags) => {
      const { resume } = await import('./commands/life.js')
      finish(await resume(sandboxes, flags))
    })
}

function addSnapshot(program: Command, finish: Finish): void {
  const description =
    'Keeps everything that a sandbox has written, and prints the id of what is kept:\ncreate --from begins with it. What runs in it stands still meanwhile.'
  described(program, 'snapshot', { summary: 'keep what a sandbox has written', description, usage: '[OPTIONS] SANDBOX' })
    .argument('<SANDBOX>', which)
    .option('--name <NAME>', 'a name for it; another that has it loses it')
    .option('--json', 'print one JSON object')
    .action(async (sandbox: string, flags: SnapshotFlags) => {
      const { snapshot } = await import('./commands/snapshot.js')
      finish(await snapshot(sandbox, flags))
    })
}

function addFork(program: Command, finish: Finish): void {
  const description = 'Makes sandboxes like this one that begin with its files as they are now, and\nprints their ids. What runs in it is not copied.'
  described(program, 'fork', { summary: 'make more sandboxes with its files', description, usage: '[OPTIONS] SANDBOX' })
    .argument('<SANDBOX>', which)
    .option('-n, --count <NUMBER>', 'how many (1)')
    .option('--name <NAME>', 'their name (its own with -fork)')
    .option('--metadata <KEY=VALUE>', 'anything to find them by; may be repeated', repeated)
    .option('--json', 'print one JSON object')
    .action(async (sandbox: string, flags: ForkFlags) => {
      const { fork } = await import('./commands/snapshot.js')
      finish(await fork(sandbox, flags))
    })
}

function addUrl(program: Command, finish: Finish): void {
  const description =
    'Prints an address at which a port of a sandbox can be reached: of this machine,\nfor as long as the sandbox lives; of a server, signed, until it expires.'
  described(program, 'url', { summary: 'print an address that leads to a port in it', description, usage: '[OPTIONS] SANDBOX PORT' })
    .argument('<SANDBOX>', which)
    .argument('<PORT>', 'where a program in it listens')
    .option('--wait [DURATION]', 'until something listens there (30s)')
    .option('--expires <DURATION>', 'of a server: how long it leads there (1h)')
    .option('--json', 'print one JSON object')
    .action(async (sandbox: string, port: string, flags: UrlFlags) => {
      const { url } = await import('./commands/url.js')
      finish(await url(sandbox, port, flags))
    })
}

function addRm(program: Command, finish: Finish): void {
  const description = 'Removes sandboxes, with all that is in them: those that are named, or those that\nare like that.'
  const command = described(program, 'rm', { summary: 'remove sandboxes, with all that is in them', description, usage: '[OPTIONS] [SANDBOX...]' })
    .argument('[SANDBOX...]', which)
    .option('--all', 'all there are')
  addFilters(command)
    .option('--json', 'print one JSON object')
    .addHelpText('after', '\nExit code: 0 when all were removed, 1 when one of them was not there.')
    .action(async (sandboxes: readonly string[], flags: RmFlags) => {
      const { rm } = await import('./commands/rm.js')
      finish(await rm(sandboxes, flags))
    })
}
