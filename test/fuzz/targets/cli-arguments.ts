import { Command, CommanderError } from 'commander'
import { addAudit } from '../../../src/cli/audit-commands.js'
import { addBench } from '../../../src/cli/bench-options.js'
import { addChanges } from '../../../src/cli/change-commands.js'
import { addCode } from '../../../src/cli/code-options.js'
import { parseCopy } from '../../../src/cli/copy-ends.js'
import { parseCreateFlags } from '../../../src/cli/create-flags.js'
import { addCreate } from '../../../src/cli/create-options.js'
import { parseExecFlags } from '../../../src/cli/exec-flags.js'
import { addInside } from '../../../src/cli/exec-options.js'
import { addKeys } from '../../../src/cli/keys-commands.js'
import { addLasting } from '../../../src/cli/lasting-options.js'
import { addMcp } from '../../../src/cli/mcp-options.js'
import { addPackages } from '../../../src/cli/packages-commands.js'
import { addPolicy } from '../../../src/cli/policy-commands.js'
import { addReceipt } from '../../../src/cli/receipt-commands.js'
import { parseRunFlags, type RunFlags } from '../../../src/cli/run-flags.js'
import { addRun } from '../../../src/cli/run-options.js'
import { addServe } from '../../../src/cli/serve-options.js'
import { addSh } from '../../../src/cli/sh-options.js'
import { addSnapshots } from '../../../src/cli/snapshots-commands.js'
import { addTemplate } from '../../../src/cli/template-commands.js'
import { addTenants } from '../../../src/cli/tenants-commands.js'
import { parseDownloadFlag, parseUploadFlag } from '../../../src/cli/transfer-flags.js'
import { SandboxError } from '../../../src/contract/errors.js'
import { parseSpec } from '../../../src/policy/spec.js'
import { type FuzzTarget, holds, textIn, unlessRefused } from '../target.js'

/** Thrown instead of doing anything. */
class Parsed extends Error {
  readonly command: Command

  constructor(command: Command) {
    super('parsed')
    this.command = command
  }
}

const finish = (): void => undefined
const adders: Readonly<Record<string, (program: Command) => void>> = {
  run: (program) => addRun(program, finish),
  sh: (program) => addSh(program, finish),
  code: (program) => addCode(program, finish),
  create: (program) => addCreate(program, finish),
  exec: (program) => addInside(program, finish),
  ls: (program) => addLasting(program, finish),
  mcp: (program) => addMcp(program, finish),
  serve: (program) => addServe(program, finish),
  bench: (program) => addBench(program, { finish, version: () => '' }),
  apply: (program) => addChanges(program, finish),
  policy: (program) => addPolicy(program, finish),
  receipt: (program) => addReceipt(program, finish),
  snapshots: (program) => addSnapshots(program, finish),
  packages: (program) => addPackages(program, finish),
  template: (program) => addTemplate(program, finish),
  keys: (program) => addKeys(program, finish),
  tenants: (program) => addTenants(program, finish),
  audit: (program) => addAudit(program, finish),
}

function everyCommand(command: Command): Command[] {
  return [command, ...command.commands.flatMap(everyCommand)]
}

const programs = new Map<string, Command>()

/** Made once: what a line says is forgotten when the next is read. */
function programOf(first: string): Command {
  const program = programs.get(first) ?? programFor(first)
  if (first in adders) programs.set(first, program)
  return program
}

function programFor(first: string): Command {
  const program = new Command('glovebox').enablePositionalOptions().hook('preAction', (_, command) => {
    throw new Parsed(command)
  })
  const chosen = Object.hasOwn(adders, first) ? adders[first] : adders.run
  chosen?.(program)
  for (const command of everyCommand(program))
    command.exitOverride().configureOutput({ writeOut: () => undefined, writeErr: () => undefined, outputError: () => undefined })
  return program
}

/** What the command would do first: read its flags. */
function readFlags(command: Command): void {
  const [flags, argv] = [command.opts(), command.args]
  if (command.name() === 'run') {
    const parsed = unlessRefused(() => parseRunFlags(argv, flags as RunFlags), namesFlag)
    if (parsed) unlessRefused(() => parseSpec(parsed.spec), isRefused)
  }
  if (command.name() === 'create') unlessRefused(() => parseCreateFlags(flags as never, { defaults: {}, ceiling: {} }), namesFlag)
  if (command.name() === 'exec') unlessRefused(() => parseExecFlags(argv.slice(1), flags as never), namesFlag)
  if (command.name() === 'cp') unlessRefused(() => parseCopy(argv[0] ?? '', argv[1] ?? ''), isRefused)
}

/** What acts on a terminal is taken out where it is printed. */
function isRefused(error: unknown): boolean {
  return error instanceof SandboxError && error.code !== 'internal' && error.message !== ''
}

/** A refusal names what it is about: a flag, or a place on the line. */
function namesFlag(error: unknown): boolean {
  return isRefused(error) && /--?[a-z]|COMMAND|[A-Z]{2,}/.test((error as SandboxError).message)
}

/** Command lines, a line of the input each word: refused with words that name what is wrong, or understood; nothing is done. */
export const target: FuzzTarget = {
  name: 'cli-arguments',
  most: 500,
  seeds: [
    'run\n--memory\n512m\n--timeout\n5s\n-e\nA=b\n-w\n/workspace\n--allow\nexample.org:443\n--\nsh\n-c\nexit 3',
    'run\n--mount\n/srv:/srv:ro\n--user\nroot\n--root\noverlay\n--cpus\n0.5\n--pids\n64\n--disk\n100m\n--upload\na:/b\n--download\n/c:d\ntrue',
    'run\n--here\n--json\n-q\n--policy\nstrict\n--driver\nbwrap\n--min-tier\ncontainer\n--\nls',
    'create\n--name\na\n--lifetime\n5m\n--metadata\nk=v\n--template\npython',
    'exec\n-t\nname\n--\nsh',
    'cp\na\nname:/b',
    'code\n-l\npython\n-c\nprint(1)',
    'ls\n--json',
    'audit\nexport\n--since\n1h',
    'keys\ncreate\n--tenant\na\n--scope\nadmin',
    'template\nbuild\n--name\nx\n.',
    'serve\n--port\n0\n--host\n127.0.0.1',
    'policy\nshow\nstrict',
    'tenants\ncreate\na\n--quota\nsandboxes=3',
  ],
  async run(bytes) {
    const words = textIn(bytes).split('\n')
    const program = programOf(words[0] ?? '')
    try {
      await program.parseAsync(words, { from: 'user' })
    } catch (error) {
      if (error instanceof Parsed) readFlags(error.command)
      else
        holds(
          (error instanceof CommanderError && error.message !== '') || isRefused(error),
          `a wrong line is told so: ${error instanceof Error ? `${error.stack}` : String(error)}`,
        )
    }
    for (const word of words) {
      unlessRefused(() => parseUploadFlag(word), isRefused)
      unlessRefused(() => parseDownloadFlag(word), isRefused)
    }
  },
}
