import type { Command } from 'commander'

interface JsonFlag {
  readonly json?: true
}

/** `snapshots list`, `snapshots remove`. */
export function addSnapshots(program: Command, finish: (code: number) => void): void {
  const snapshots = program
    .command('snapshots')
    .summary('list and remove the snapshots that are kept here')
    .description(
      'Lists and removes the snapshots that are kept on this machine. They are taken by\nsandbox.snapshot() of the library, and stay until they are removed.',
    )
    .usage('COMMAND [OPTIONS]')
    .helpOption('-h, --help', 'print this')
    .helpCommand(false)
  addList(snapshots, finish)
  addRemove(snapshots, finish)
}

function addList(snapshots: Command, finish: (code: number) => void): void {
  snapshots
    .command('list')
    .summary('list every snapshot, the oldest first')
    .description(
      'Lists every snapshot, the oldest first: when it was taken, how large its files\nare, how many entries it has, its template, its id and its name.',
    )
    .usage('[OPTIONS]')
    .option('--json', 'print one JSON object')
    .helpOption('-h, --help', 'print this')
    .action(async (flags: JsonFlag) => {
      const { listSnapshots } = await import('./commands/snapshots.js')
      finish(await listSnapshots(flags))
    })
}

function addRemove(snapshots: Command, finish: (code: number) => void): void {
  snapshots
    .command('remove')
    .summary('remove snapshots, by id or name')
    .description('Removes snapshots with all their names.')
    .argument('<SNAPSHOT...>', 'ids or names')
    .usage('[OPTIONS] SNAPSHOT...')
    .option('--json', 'print one JSON object')
    .helpOption('-h, --help', 'print this')
    .addHelpText('after', '\nExit code: 0 when all were removed, 1 when there was no such snapshot.')
    .action(async (references: readonly string[], flags: JsonFlag) => {
      const { removeSnapshots } = await import('./commands/snapshots.js')
      finish(await removeSnapshots(references, flags))
    })
}
