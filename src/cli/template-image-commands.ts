import type { Command } from 'commander'
import type { FolderFlags, ImportFlags, PruneFlags, PullFlags } from './commands/template-image.js'

const repeated = (value: string, before: readonly string[] = []): readonly string[] => [...before, value]

/** `template pull`, `template import`, `template prune`. */
export function addImageCommands(template: Command, finish: (code: number) => void): void {
  addPull(template, finish)
  addImport(template, finish)
  addPrune(template, finish)
}

/** What only a build of a Dockerfile takes. */
export function addFolderOptions(command: Command): Command {
  return command
    .option('--name <NAME>', "of a folder: what the template is called (the folder's name)")
    .option('--file <FILE>', 'of a folder: its Dockerfile (Dockerfile)')
    .option('--target <STAGE>', 'of a folder: the stage that is wanted (the last)')
    .option('--build-arg <NAME=VALUE>', 'of a folder: for its ARG; may be repeated', repeated)
    .option('--allow <HOST[:PORT]>', 'of a folder: what RUN may reach (nothing); may be\nrepeated', repeated)
    .option('--no-cache', 'of a folder: do again what was done before')
    .option('--pull', 'of a folder: ask registries again for what is here')
    .option('-m, --memory <SIZE>', 'of a folder: for its sandboxes, with all they write (4g)')
    .option('--disk <SIZE>', 'of a folder: what they may write (4g)')
    .option('--timeout <DURATION>', 'of a folder: for each RUN (1h)')
}

export type { FolderFlags }

function addPull(template: Command, finish: (code: number) => void): void {
  template
    .command('pull')
    .summary('make a template of an image from a registry')
    .description(
      'Fetches an image from a registry, by tag or digest, and makes a template of it.\nEvery part is compared with its digest. The login is what docker login wrote, or\n--login. HTTP is spoken only to this machine, unless --plain-http says so.',
    )
    .argument('<IMAGE>', 'docker://HOST/NAME:TAG, or docker://HOST/NAME@sha256:…')
    .usage('[OPTIONS] IMAGE')
    .option('--name <NAME>', "what the template is called (the image's name and tag)")
    .option('--login <USER>', 'show this name, with GLOVEBOX_REGISTRY_PASSWORD or --password-stdin')
    .option('--password-stdin', 'read the password from stdin')
    .option('--plain-http', 'speak HTTP to a registry on another machine')
    .option('--timeout <DURATION>', 'how long a registry may say nothing (30s)')
    .option('--again', 'make it although the same is there')
    .option('-q, --quiet', 'say nothing of the progress')
    .option('--json', 'print one JSON object')
    .helpOption('-h, --help', 'print this')
    .addHelpText('after', '\nExit code: 0 when the template is there, 125 when it could not be made.')
    .action(async (image: string, flags: PullFlags) => {
      const { pullTemplate } = await import('./commands/template-image.js')
      finish(await pullTemplate(image, flags))
    })
}

function addImport(template: Command, finish: (code: number) => void): void {
  template
    .command('import')
    .summary('make a template of an archive')
    .description(
      'Makes a template of an archive: what docker save writes, an OCI layout, or a\nplain root, compressed or not. Devices, set-id bits and names that nobody can\ntype are left out, and told; an archive that leads out of itself is refused.\nAt most 16 GiB and 1,000,000 entries are taken.',
    )
    .argument('<FILE>', 'the archive')
    .usage('[OPTIONS] FILE')
    .option('--name <NAME>', "what the template is called (the file's name)")
    .option('--again', 'make it although the same is there')
    .option('-q, --quiet', 'say nothing of the progress')
    .option('--json', 'print one JSON object')
    .helpOption('-h, --help', 'print this')
    .addHelpText('after', '\nExit code: 0 when the template is there, 125 when it could not be made.')
    .action(async (file: string, flags: ImportFlags) => {
      const { importTemplate } = await import('./commands/template-image.js')
      finish(await importTemplate(file, flags))
    })
}

function addPrune(template: Command, finish: (code: number) => void): void {
  template
    .command('prune')
    .summary('remove what no template needs')
    .description(
      'Removes what no template needs: layers that were downloaded, steps of Dockerfiles\nthat are kept to be spared, templates without a name that no sandbox uses. What\nis removed is told with its size. Templates stay: see template rm.',
    )
    .usage('[OPTIONS]')
    .option('--packages', "also Debian's packages that were downloaded")
    .option('--dry-run', 'only tell')
    .option('--json', 'print one JSON object')
    .helpOption('-h, --help', 'print this')
    .action(async (flags: PruneFlags) => {
      const { pruneTemplates } = await import('./commands/template-image.js')
      finish(await pruneTemplates(flags))
    })
}
