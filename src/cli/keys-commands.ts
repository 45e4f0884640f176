import type { Command } from 'commander'
import type { KeyCreateFlags, KeyListFlags } from './commands/keys.js'
import { withHelp } from './with-help.js'

const repeat = (value: string, earlier: readonly string[] = []): readonly string[] => [...earlier, value]

/** `keys create`, `keys ls`, `keys revoke`. */
export function addKeys(program: Command, finish: (code: number) => void): void {
  const keys = program
    .command('keys')
    .summary('make, list and revoke keys of the server')
    .description('Makes, lists and revokes the keys with which a server here is used. A running\nserver heeds them at once.')
    .usage('COMMAND [OPTIONS]')
    .helpOption('-h, --help', 'print this')
    .helpCommand(false)
  addCreate(keys, finish)
  addList(keys, finish)
  addRevoke(keys, finish)
}

function addCreate(keys: Command, finish: (code: number) => void): void {
  keys
    .command('create')
    .summary('make a key, and print it this once')
    .description('Makes a key and prints it. It is shown this once: what is kept is its hash.')
    .usage('[OPTIONS]')
    .option('--tenant <NAME>', 'whose it is (default)')
    .option('--scope <SCOPE>', 'read, run or admin; each includes those before it (run)', repeat)
    .option('--expires <WHEN>', "after so long, such as '30d', or at a time; never when left out")
    .option('--name <TEXT>', 'what it is for')
    .option('--json', 'print one JSON object')
    .helpOption('-h, --help', 'print this')
    .addHelpText(
      'after',
      '\nread sees what is there and what it prints; run also makes, uses and closes\nsandboxes; admin also manages keys, tenants and the audit trail, of all tenants.',
    )
    .action(async (flags: KeyCreateFlags) => {
      const { createKey } = await import('./commands/keys.js')
      finish(await withHelp('keys create', () => createKey(flags)))
    })
}

function addList(keys: Command, finish: (code: number) => void): void {
  keys
    .command('ls')
    .summary('list keys, the oldest first')
    .description('Lists keys, the oldest first: id, tenant, scopes, when each was made and last\nused, when it expires, and its name.')
    .usage('[OPTIONS]')
    .option('--tenant <NAME>', 'of this tenant only')
    .option('--all', 'with those that were revoked or have expired')
    .option('--json', 'print one JSON object')
    .helpOption('-h, --help', 'print this')
    .action(async (flags: KeyListFlags) => {
      const { listKeys } = await import('./commands/keys.js')
      finish(await withHelp('keys ls', () => listKeys(flags)))
    })
}

function addRevoke(keys: Command, finish: (code: number) => void): void {
  keys
    .command('revoke')
    .summary('accept keys no more, from the next request on')
    .description('Revokes keys: they are not accepted any more, from the next request on.')
    .argument('<ID...>', 'ids, as keys ls prints them')
    .usage('[OPTIONS] ID...')
    .option('--json', 'print one JSON object')
    .helpOption('-h, --help', 'print this')
    .addHelpText('after', '\nExit code: 0 when all were revoked, 1 when there was no such key.')
    .action(async (ids: readonly string[], flags: { readonly json?: true }) => {
      const { revokeKeys } = await import('./commands/keys.js')
      finish(await withHelp('keys revoke', () => revokeKeys(ids, flags)))
    })
}
