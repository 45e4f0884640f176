import type { Command } from 'commander'
import type { VerifyFlags } from './commands/verify.js'

interface Called {
  readonly finish: (code: number) => void
  readonly version: () => string
}

const notes = `
Groups: filesystem, kernel, processes, network, tenants, server, advisories,
posture, host.

Every driver that is available here is attacked: as an ordinary user of the
cell, as its root, and in a liner, where there is such. What is not available is
named with its reason.

Exit code: 0 when everything held, 1 when something did not.`

function gathered(each: string, before: readonly string[] | undefined): readonly string[] {
  return [...(before ?? []), each]
}

/** `glovebox verify`. */
export function addVerify(program: Command, { finish, version }: Called): void {
  program
    .command('verify')
    .summary('attack this installation, and show what held')
    .description('Attacks this installation from inside real sandboxes and from outside, and shows\nwhat held and what did not.')
    .usage('[OPTIONS]')
    .option('--driver <NAME>', 'attack this driver only; may be repeated', gathered)
    .option('--group <NAME>', 'ask this group only; may be repeated', gathered)
    .option('--case <ID>', 'ask this case only; may be repeated', gathered)
    .option('--list', 'print the cases, and ask nothing')
    .option('--html <FILE>', 'write a report that needs nothing else to be read')
    .option('--json', 'print one JSON object')
    .option('-q, --quiet', 'print only what did not hold')
    .helpOption('-h, --help', 'print this')
    .addHelpText('after', notes)
    .action(async (flags: VerifyFlags) => {
      const { verifyInstallation } = await import('./commands/verify.js')
      finish(await verifyInstallation(flags, version()))
    })
}
