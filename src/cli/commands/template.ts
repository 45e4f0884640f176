import { templateBuilder } from '../../compose.js'
import { reworded, SandboxError } from '../../contract/errors.js'
import { exitCodes } from '../exit-codes.js'
import { watchInterrupts } from '../interrupts.js'
import { colorsFor, escapeControls, printJson, say } from '../print.js'
import { writeOut } from '../streams.js'
import { templateLines, templatePage } from '../template-page.js'
import { showProgress } from '../template-progress.js'
import { folderHint } from './template-image.js'
import { bytesInWords, durationInWords } from '../words.js'

export interface JsonFlag {
  readonly json?: true
}

export interface BuildFlags extends JsonFlag {
  readonly again?: true
  readonly quiet?: true
}

export interface InspectFlags extends JsonFlag {
  readonly verify?: true
}

const notAsItShouldBe = 1

/** Resolves to 0 when the template is there. */
export async function buildTemplate(recipe: string, flags: BuildFlags): Promise<number> {
  using interrupts = watchInterrupts()
  using progress = showProgress({ isQuiet: flags.quiet === true })
  const { signal } = interrupts
  const result = await templateBuilder()
    .build(recipe, { signal, onEvent: progress.tell, again: flags.again === true })
    .catch((error: unknown) => {
      const hint = error instanceof SandboxError && error.code === 'invalid' ? folderHint(recipe) : undefined
      if (hint !== undefined) throw reworded(error as SandboxError, (error as SandboxError).message, hint)
      // What was under way says in many ways that it was stopped.
      throw signal.aborted ? signal.reason : error
    })
  progress[Symbol.dispose]()
  if (flags.json) await printJson(result)
  else {
    const size = `${bytesInWords(result.bytes)}, ${result.packages.length} packages`
    const how = result.wasThere ? 'is up to date' : `was built in ${durationInWords(result.tookMs)}`
    await writeOut(`template ${result.name} ${how}: ${result.id} (${size})\n`)
  }
  return exitCodes.ok
}

/** A line for each; nothing when there is none. */
export async function listTemplates(flags: JsonFlag): Promise<number> {
  const builder = templateBuilder()
  const templates = await builder.list()
  if (flags.json) await printJson({ templates: templates.map(({ packages, ...rest }) => ({ ...rest, packages: packages.length })) })
  else if (templates.length === 0) say(`no template was built here yet; there are recipes for ${builder.recipes.map(({ name }) => name).join(', ')}`)
  else await writeOut(templateLines(templates))
  return exitCodes.ok
}

/** Resolves to 1 when it is not what was built. */
export async function inspectTemplate(name: string, flags: InspectFlags): Promise<number> {
  using interrupts = watchInterrupts()
  const builder = templateBuilder()
  builder.inspect(name)
  const differences = flags.verify ? await builder.verify(name, { signal: interrupts.signal }) : undefined
  const template = builder.inspect(name)
  if (flags.json) await printJson({ ...template, ...(differences && { differences }) })
  else {
    await writeOut(templatePage(template, colorsFor(process.stdout)))
    for (const { path, what } of differences ?? []) await writeOut(`${escapeControls(path)} ${escapeControls(what)}\n`)
    if (differences) await writeOut(differences.length === 0 ? 'every file is what was built\n' : `build it again: glovebox template build ${name}\n`)
  }
  return differences !== undefined && differences.length > 0 ? notAsItShouldBe : exitCodes.ok
}

/** Resolves to 1 when one of them was not there; the others are removed all the same. */
export async function removeTemplates(names: readonly string[], flags: JsonFlag): Promise<number> {
  const builder = templateBuilder()
  const removed: string[] = []
  const missing: string[] = []
  for (const name of names) ((await builder.remove(name)) ? removed : missing).push(name)
  if (flags.json) await printJson({ removed, missing })
  else for (const name of missing) say(`there is no template ${name}`)
  return missing.length === 0 ? exitCodes.ok : notAsItShouldBe
}

/** Undefined for a template that says nothing of it. */
export async function commandOf(name: string): Promise<readonly string[] | undefined> {
  const command = await templateBuilder().commandOf(name)
  return command.length === 0 ? undefined : command
}
