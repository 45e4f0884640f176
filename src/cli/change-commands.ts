import type { Command } from 'commander'
import type { ChangesFlags } from './commands/changes.js'

type Finish = (code: number) => void

const changesNotes = `
Without --all at most 2000 names, and 5000 lines of differences, 1000 of each
file; what is beyond is counted. What is binary, or over 256 KiB, is only named.
A byte of a name that is no UTF-8 is shown as \\xNN.`

const applyNotes = `
Nothing is applied when a file that is to be changed is not as it was when the
command saw it; the message names it. FILE... takes only these, or what is in
them, and a name that is no UTF-8 is typed as its bytes: -- $'caf\\xe9'
No link is followed; set-user-id and set-group-id bits are left out.

Exit code: 0, or 125 when nothing or not all was applied.`

/** `changes`, `apply`, `drop`: what becomes of what run --here kept aside. */
export function addChanges(program: Command, finish: Finish): void {
  addList(program, finish)
  addApply(program, finish)
  addDrop(program, finish)
}

function addList(program: Command, finish: Finish): void {
  program
    .command('changes')
    .summary('show what run --here kept aside')
    .description('Lists the changes that run --here kept aside, or shows those of ID.')
    .argument('[ID]', 'as listed; its first letters do')
    .usage('[OPTIONS] [ID]')
    .option('--all', 'of ID every name and line, however many')
    .option('--json', 'print one JSON value')
    .helpOption('-h, --help', 'print this')
    .addHelpText('after', changesNotes)
    .action(async (id: string | undefined, flags: ChangesFlags) => {
      const { showChanges } = await import('./commands/changes.js')
      finish(await showChanges(id, flags))
    })
}

function addApply(program: Command, finish: Finish): void {
  program
    .command('apply')
    .summary('take over what run --here kept aside')
    .description('Takes over the changes that run --here kept aside: those of ID, or the latest of\nthis folder.')
    .argument('[ID]', 'as listed by changes; its first letters do')
    .argument('[FILE...]', 'only these')
    .usage('[OPTIONS] [ID] [-- FILE...]')
    .option('--json', 'print one JSON object')
    .option('-q, --quiet', 'say nothing when it is done')
    .helpOption('-h, --help', 'print this')
    .addHelpText('after', applyNotes)
    .action(async (...called: [id: string | undefined, files: string[], flags: ChangesFlags, command: Command]) => {
      const [id, files, flags, command] = called
      const { applyChanges } = await import('./commands/changes.js')
      const [named, paths] = splitAtDashes(command, { id, files })
      finish(await applyChanges(named, paths, flags))
    })
}

/** What stands behind the dashes is a file, also when no ID stands before them. */
function splitAtDashes(
  command: Command,
  { id, files }: { readonly id: string | undefined; readonly files: readonly string[] },
): [string | undefined, readonly string[]] {
  const typed = rawArguments(command)
  const dashes = typed.indexOf('--')
  if (dashes === -1 || id === undefined) return [id, files]
  const behind = typed.length - dashes - 1
  const all = [id, ...files]
  return behind === all.length ? [undefined, all] : [id, files]
}

function rawArguments(command: Command): readonly string[] {
  return (command.parent as unknown as { readonly rawArgs?: readonly string[] } | null)?.rawArgs ?? []
}

function addDrop(program: Command, finish: Finish): void {
  program
    .command('drop')
    .summary('forget what run --here kept aside')
    .description('Forgets the changes that run --here kept aside: those of ID, or the latest of\nthis folder.')
    .argument('[ID]', 'as listed by changes; its first letters do')
    .usage('[OPTIONS] [ID]')
    .option('--json', 'print one JSON object')
    .option('-q, --quiet', 'say nothing when it is done')
    .helpOption('-h, --help', 'print this')
    .action(async (id: string | undefined, flags: ChangesFlags) => {
      const { dropChanges } = await import('./commands/changes.js')
      finish(await dropChanges(id, flags))
    })
}
