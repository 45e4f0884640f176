import type { Command } from 'commander'
import type { GcFlags } from './commands/gc.js'

export function addGc(program: Command, finish: (code: number) => void): void {
  program
    .command('gc')
    .summary('remove what processes left that were killed')
    .description(
      "Ends and removes what processes of Glovebox left on this machine that were\nkilled: processes, cgroups, ids, containers, folders, drafts, sockets. Only what\nis this user's, and only of processes that are dead. Whoever makes the next\nsandbox does the same.",
    )
    .usage('[OPTIONS]')
    .option('--dry-run', 'say what would be removed, and remove nothing')
    .option('--json', 'print one JSON object')
    .helpOption('-h, --help', 'print this')
    .addHelpText('after', '\nExit code: 0, or 1 when something of a dead process could not be removed.')
    .action(async (flags: GcFlags) => {
      const { gc } = await import('./commands/gc.js')
      finish(await gc(flags))
    })
}
