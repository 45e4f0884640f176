import type { Command } from 'commander'
import type { TenantFlags } from './commands/tenants.js'
import { withHelp } from './with-help.js'

/** `tenants create`, `tenants ls`, `tenants set`, `tenants rm`. */
export function addTenants(program: Command, finish: (code: number) => void): void {
  const tenants = program
    .command('tenants')
    .summary('make, list, change and remove tenants of the server')
    .description(
      'Makes, lists, changes and removes tenants: whose keys and sandboxes are, under\nwhat policy, and how much of the machine they may have. A running server heeds\nit at once, for what is made from then on.',
    )
    .usage('COMMAND [OPTIONS]')
    .helpOption('-h, --help', 'print this')
    .helpCommand(false)
  addCreate(tenants, finish)
  addList(tenants, finish)
  addSet(tenants, finish)
  addRemove(tenants, finish)
}

function withTenantOptions(command: Command): Command {
  return command
    .option('--title <TEXT>', `what it is called`)
    .option('--policy <FILE>', `a policy, or strict, default or data: beside the operator's, both hold`)
    .option('--sandboxes <N>', `at once`)
    .option('--cpus <N>', `of all its sandboxes together`)
    .option('--memory <SIZE>', `of all its sandboxes together`)
    .option('--disk <SIZE>', `of all its sandboxes together`)
    .option('--creates <N>', `sandboxes made within any minute`)
    .option('--egress <SIZE>', `sent and received from midnight to midnight UTC`)
    .option('--audit-code <HOW>', 'commands and code in the audit trail: full, or hash')
    .option('--audit-env <HOW>', 'variables in the audit trail: names, or values')
    .option('--audit-receipts <WHEN>', 'hashes of receipts in it: asked, or always')
    .option('--json', 'print one JSON object')
    .helpOption('-h, --help', 'print this')
}

function addCreate(tenants: Command, finish: (code: number) => void): void {
  const command = tenants
    .command('create')
    .summary('make a tenant')
    .description('Makes a tenant. A quota that is left out bounds nothing.')
    .argument('<NAME>', 'its id: lower-case letters, digits and hyphens, at most 40')
    .usage('[OPTIONS] NAME')
  withTenantOptions(command).action(async (name: string, flags: TenantFlags) => {
    const { createTenant } = await import('./commands/tenants.js')
    finish(await withHelp('tenants create', () => createTenant(name, flags)))
  })
}

function addSet(tenants: Command, finish: (code: number) => void): void {
  const command = tenants
    .command('set')
    .summary('change what a tenant may have')
    .description("Changes a tenant: what is left out stays, and 'none' takes away.")
    .argument('<NAME>', 'its id')
    .usage('[OPTIONS] NAME')
  withTenantOptions(command).action(async (name: string, flags: TenantFlags) => {
    const { setTenant } = await import('./commands/tenants.js')
    finish(await withHelp('tenants set', () => setTenant(name, flags)))
  })
}

function addList(tenants: Command, finish: (code: number) => void): void {
  tenants
    .command('ls')
    .summary('list tenants with their quotas')
    .description('Lists tenants by id, with their quotas and their policies.')
    .usage('[OPTIONS]')
    .option('--json', 'print one JSON object')
    .helpOption('-h, --help', 'print this')
    .action(async (flags: { readonly json?: true }) => {
      const { listTenants } = await import('./commands/tenants.js')
      finish(await withHelp('tenants ls', () => listTenants(flags)))
    })
}

function addRemove(tenants: Command, finish: (code: number) => void): void {
  tenants
    .command('rm')
    .summary('remove tenants with their keys')
    .description(
      'Removes tenants with their keys, which are not accepted any more from the next\nrequest on. Sandboxes that a running server has for them end with their lifetime.',
    )
    .argument('<NAME...>', 'ids')
    .usage('[OPTIONS] NAME...')
    .option('--json', 'print one JSON object')
    .helpOption('-h, --help', 'print this')
    .addHelpText('after', '\nExit code: 0 when all were removed, 1 when there was no such tenant.')
    .action(async (names: readonly string[], flags: { readonly json?: true }) => {
      const { removeTenants } = await import('./commands/tenants.js')
      finish(await withHelp('tenants rm', () => removeTenants(names, flags)))
    })
}
