import type { Command } from 'commander'
import type { AuditFilterFlags, AuditListFlags, AuditTailFlags, AuditVerifyFlags } from './commands/audit.js'
import { withHelp } from './with-help.js'

/** `audit ls`, `audit tail`, `audit verify`, `audit export`, `audit head`, `audit prune`. */
export function addAudit(program: Command, finish: (code: number) => void): void {
  const audit = program
    .command('audit')
    .summary('read, follow and verify the audit trail')
    .description('Reads the audit trail of the server here: what was done, by whom and with what\noutcome, in a chain that cannot be edited unnoticed.')
    .usage('COMMAND [OPTIONS]')
    .helpOption('-h, --help', 'print this')
    .helpCommand(false)
  addList(audit, finish)
  addTail(audit, finish)
  addVerify(audit, finish)
  addExport(audit, finish)
  addHead(audit, finish)
  addPrune(audit, finish)
}

function withFilters(command: Command): Command {
  return command
    .option('--tenant <NAME>', 'of this tenant only')
    .option('--agent <NAME>', 'of this agent only')
    .option('--sandbox <ID>', 'of this sandbox only')
    .option('--actor <KEY>', "by this key only; 'local' is the machine's own user")
    .option('--act <ACT>', 'of this kind only, such as run.start')
    .option('--since <WHEN>', "from a time on, or since so long ago, such as '2h'")
}

function addList(audit: Command, finish: (code: number) => void): void {
  const command = audit.command('ls').summary('list records, the newest first').description('Lists records, the newest first.').usage('[OPTIONS]')
  withFilters(command)
    .option('--until <WHEN>', 'before a time, or before so long ago')
    .option('-n, --limit <N>', 'at most so many (100)')
    .option('--cursor <NUMBER>', 'go on behind this record')
    .option('--json', 'print one JSON object')
    .helpOption('-h, --help', 'print this')
    .action(async (flags: AuditListFlags) => {
      const { listAudit } = await import('./commands/audit.js')
      finish(await withHelp('audit ls', () => listAudit(flags)))
    })
}

function addTail(audit: Command, finish: (code: number) => void): void {
  const command = audit
    .command('tail')
    .summary('print the latest records, and what comes')
    .description('Prints the latest records, then each as it is written, until Ctrl-C.')
    .usage('[OPTIONS]')
  withFilters(command)
    .option('-n, --last <N>', 'so many of the latest first (10)')
    .option('--json', 'print one JSON object a record')
    .helpOption('-h, --help', 'print this')
    .action(async (flags: AuditTailFlags) => {
      const { tailAudit } = await import('./commands/audit.js')
      finish(await withHelp('audit tail', () => tailAudit(flags)))
    })
}

function addVerify(audit: Command, finish: (code: number) => void): void {
  audit
    .command('verify')
    .summary('tell whether every record is as it was written')
    .description('Tells whether every record is as it was written and none is missing; otherwise\nwhich is the first that is not.')
    .argument('[FILE]', 'what audit export printed, instead of the trail here')
    .usage('[OPTIONS] [FILE]')
    .option('--head <FILE>', 'a head that was kept elsewhere, which must be in it')
    .option('--json', 'print one JSON object')
    .helpOption('-h, --help', 'print this')
    .addHelpText('after', '\nExit code: 0 when it is, 1 when it is not or is signed by a key unknown here.')
    .action(async (file: string | undefined, flags: AuditVerifyFlags) => {
      const { verifyAudit } = await import('./commands/audit.js')
      finish(await withHelp('audit verify', () => verifyAudit(file, flags)))
    })
}

function addExport(audit: Command, finish: (code: number) => void): void {
  audit
    .command('export')
    .summary('print the whole chain, for others to verify')
    .description('Prints the whole chain as lines of JSON, with its signed head: whoever has the\npublic key (receipt key) can verify it.')
    .usage('[OPTIONS]')
    .helpOption('-h, --help', 'print this')
    .action(async () => {
      const { exportAudit } = await import('./commands/audit.js')
      finish(await withHelp('audit export', () => exportAudit()))
    })
}

function addHead(audit: Command, finish: (code: number) => void): void {
  audit
    .command('head')
    .summary('print the signed head, to be kept elsewhere')
    .description('Prints the signed head: kept elsewhere, it shows later whether anything up to it\nwas changed or taken back (audit verify --head FILE).')
    .usage('[OPTIONS]')
    .helpOption('-h, --help', 'print this')
    .action(async () => {
      const { printHead } = await import('./commands/audit.js')
      finish(await withHelp('audit head', () => printHead()))
    })
}

function addPrune(audit: Command, finish: (code: number) => void): void {
  audit
    .command('prune')
    .summary('take away what is older; the rest still proves itself')
    .description('Takes away records that are older. A signed checkpoint tells where the chain\ngoes on, so that what is left still proves itself.')
    .usage('[OPTIONS] --before WHEN')
    .requiredOption('--before <WHEN>', "a time, or so long ago, such as '90d'")
    .option('--json', 'print one JSON object')
    .helpOption('-h, --help', 'print this')
    .action(async (flags: { readonly before: string } & Pick<AuditFilterFlags, 'json'>) => {
      const { pruneAudit } = await import('./commands/audit.js')
      finish(await withHelp('audit prune', () => pruneAudit(flags)))
    })
}
