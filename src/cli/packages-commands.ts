import type { Command } from 'commander'
import type { PackagesFlags } from './commands/packages.js'

/** `packages`: what is kept of them. */
export function addPackages(program: Command, finish: (code: number) => void): void {
  program
    .command('packages')
    .summary('show what is kept of packages, and be rid of it')
    .description(
      'Shows how many files of packages are kept here, fetched and verified once by the\nway out of some sandbox, and how large they are together. At most 1 GiB is kept;\nwhat nobody asked for longest goes first.',
    )
    .usage('[OPTIONS]')
    .option('--prune', 'remove them all; what is asked for again is fetched again')
    .option('--json', 'print one JSON object')
    .helpOption('-h, --help', 'print this')
    .action(async (flags: PackagesFlags) => {
      const { packages } = await import('./commands/packages.js')
      finish(await packages(flags))
    })
}
