import type { Command } from 'commander'
import type { BuildFlags, InspectFlags, JsonFlag } from './commands/template.js'
import { addFolderOptions, addImageCommands, type FolderFlags } from './template-image-commands.js'

const notes = `
A template is the files that a sandbox's programs see: host, python, node and
shell are what this machine has; others are made once, from Debian's packages,
from images or by a Dockerfile, and never change. Use one with
run --template NAME.`

/** `template build`, `pull`, `import`, `ls`, `inspect`, `rm`, `prune`. */
export function addTemplate(program: Command, finish: (code: number) => void): void {
  const template = program
    .command('template')
    .summary('build, pull, import, list, inspect and remove root filesystems')
    .description('Makes, lists, inspects and removes the root filesystems that sandboxes can have.')
    .usage('COMMAND [OPTIONS]')
    .helpOption('-h, --help', 'print this')
    .helpCommand(false)
    .addHelpText('after', notes)
  addBuild(template, finish)
  addImageCommands(template, finish)
  addList(template, finish)
  addInspect(template, finish)
  addRemove(template, finish)
}

function addBuild(template: Command, finish: (code: number) => void): void {
  const build = template
    .command('build')
    .summary('build a template, or see that it is up to date')
    .description(
      "Builds a template from Debian's packages, verified by Debian's signatures: data\n(Python with numpy, pandas, matplotlib, plotly, scikit-learn), python, node,\nshell or polyglot. What was downloaded is kept, so that a build which was\nstopped goes on from there. When nothing is newer, what is there stays.\nOr does what the Dockerfile of a folder says, each RUN in a sandbox, as root\nthere; what was done before and is the same is not done again.",
    )
    .argument('<RECIPE|FOLDER>', 'what to build; a folder is . or has a / in it')
    .usage('[OPTIONS] RECIPE|FOLDER')
    .option('--again', 'build it although the same is there')
    .option('-q, --quiet', 'say nothing of the progress')
    .option('--json', 'print one JSON object')
    .helpOption('-h, --help', 'print this')
    .addHelpText('after', '\nExit code: 0 when the template is there, 125 when it cannot be built here.')
  addFolderOptions(build).action(async (recipe: string, flags: BuildFlags & FolderFlags) => {
    const { buildFolder, isFolder } = await import('./commands/template-image.js')
    if (isFolder(recipe)) {
      finish(await buildFolder(recipe, flags))
      return
    }
    const { buildTemplate } = await import('./commands/template.js')
    finish(await buildTemplate(recipe, flags))
  })
}

function addList(template: Command, finish: (code: number) => void): void {
  template
    .command('ls')
    .alias('list')
    .summary('list what was built')
    .description('Lists the templates that there are: name, id, size, when and how it was made, its\nlanguages, and how many sandboxes use it now.')
    .usage('[OPTIONS]')
    .option('--json', 'print one JSON object')
    .helpOption('-h, --help', 'print this')
    .action(async (flags: JsonFlag) => {
      const { listTemplates } = await import('./commands/template.js')
      finish(await listTemplates(flags))
    })
}

function addInspect(template: Command, finish: (code: number) => void): void {
  template
    .command('inspect')
    .alias('show')
    .summary('show what a template is made of, or that it is whole')
    .description('Shows what a template is made of. With --verify every file of it is read and\ncompared with what was built.')
    .argument('<NAME>', 'the template')
    .usage('[OPTIONS] NAME')
    .option('--verify', 'read all of it, and name every file that is not what it was')
    .option('--json', 'print one JSON object')
    .helpOption('-h, --help', 'print this')
    .addHelpText('after', '\nExit code: 0, or 1 when --verify finds a difference: the template is not used\nany more then, until it is built again.')
    .action(async (name: string, flags: InspectFlags) => {
      const { inspectTemplate } = await import('./commands/template.js')
      finish(await inspectTemplate(name, flags))
    })
}

function addRemove(template: Command, finish: (code: number) => void): void {
  template
    .command('rm')
    .summary('remove templates')
    .description('Removes templates that were built. One that a sandbox uses is not removed.')
    .argument('<NAME...>', 'the templates')
    .usage('[OPTIONS] NAME...')
    .option('--json', 'print one JSON object')
    .helpOption('-h, --help', 'print this')
    .addHelpText('after', '\nExit code: 0 when all were removed, 1 when there was no such template.')
    .action(async (names: readonly string[], flags: JsonFlag) => {
      const { removeTemplates } = await import('./commands/template.js')
      finish(await removeTemplates(names, flags))
    })
}
