/** A Dockerfile as data: stages with what is to be done in each. Variables are replaced when it is done, since they change on the way. */
import type { HereDocument, DockerLine } from './dockerfile-lines.js'
import { readLines, wrong } from './dockerfile-lines.js'
import { jsonWords } from './dockerfile-words.js'

interface Told {
  readonly line: number
  /** As it is shown to people: its name, and how it begins. */
  readonly shown: string
}

export type Command = { readonly kind: 'argv'; readonly argv: readonly string[] } | { readonly kind: 'shell'; readonly text: string }

export type Instruction = Told &
  (
    | { readonly type: 'run'; readonly command: Command }
    | CopyInstruction
    | { readonly type: 'env' | 'label'; readonly rest: string }
    | { readonly type: 'arg'; readonly rest: string }
    | { readonly type: 'workdir' | 'user'; readonly rest: string }
    | { readonly type: 'cmd' | 'entrypoint'; readonly command: Command }
    | { readonly type: 'shell'; readonly argv: readonly string[] }
    /** Understood, and without any effect here. */
    | { readonly type: 'nothing'; readonly why: string }
  )

export interface CopyInstruction extends Told {
  readonly type: 'copy' | 'add'
  /** Of another stage, or an image. */
  readonly from: string | undefined
  readonly chmod: string | undefined
  readonly rest: string
  readonly heredocs: readonly HereDocument[]
}

export interface Stage extends Told {
  /** As it is written. */
  readonly base: string
  readonly name: string | undefined
  readonly instructions: readonly Instruction[]
}

export interface Dockerfile {
  /** ARG before the first FROM: only for FROM. */
  readonly globals: readonly (Told & { readonly rest: string })[]
  readonly stages: readonly Stage[]
  readonly escape: string
}

const without: Readonly<Record<string, string>> = {
  EXPOSE: 'a port is opened with the sandbox: glovebox run --port',
  VOLUME: 'a folder is mounted with the sandbox: glovebox run --mount',
  STOPSIGNAL: 'a sandbox is ended as a whole',
  HEALTHCHECK: 'nobody looks after a sandbox',
  MAINTAINER: 'it says nothing to anybody here',
}

const mostShown = 80

/** Throws SandboxError('invalid') that names the line. */
export function parseDockerfile(text: string): Dockerfile {
  const { lines, escape } = readLines(text)
  const globals: Dockerfile['globals'][number][] = []
  const stages: (Omit<Stage, 'instructions'> & { readonly instructions: Instruction[] })[] = []
  for (const line of lines) {
    const stage = stages.at(-1)
    if (line.name === 'FROM') stages.push({ ...parseFrom(line), instructions: [] })
    else if (stage) stage.instructions.push(parseInstruction(line))
    else if (line.name === 'ARG') globals.push({ ...told(line), rest: line.rest })
    else throw wrong(line.line, `${line.name} before any FROM`)
  }
  if (stages.length === 0) throw wrong(1, 'there is no FROM in it')
  return { globals, stages, escape }
}

function told({ line, name, rest }: DockerLine): Told {
  const whole = `${name} ${rest.replace(/\s+/g, ' ')}`.trim()
  return { line, shown: whole.length > mostShown ? `${whole.slice(0, mostShown - 1)}…` : whole }
}

function parseFrom(line: DockerLine): Omit<Stage, 'instructions'> {
  checkFlags(line, ['platform'])
  const [base = '', as, name, ...more] = line.rest.split(/\s+/)
  if (base === '' || (as !== undefined && (as.toLowerCase() !== 'as' || name === undefined)) || more.length > 0)
    throw wrong(line.line, 'FROM is followed by an image, and perhaps by AS and a name')
  if (name !== undefined && !/^[a-z][a-z0-9-_.]*$/i.test(name)) throw wrong(line.line, `'${name}' cannot be the name of a stage`)
  return { ...told(line), base, name: name?.toLowerCase() }
}

function parseInstruction(line: DockerLine): Instruction {
  const about = told(line)
  const { name, rest } = line
  if (Object.hasOwn(without, name)) return { ...about, type: 'nothing', why: without[name] ?? '' }
  if (rest === '' && name !== 'CMD' && name !== 'ENTRYPOINT') throw wrong(line.line, `${name} is followed by nothing`)
  switch (name) {
    case 'RUN':
      return { ...about, type: 'run', command: parseRun(line) }
    case 'COPY':
    case 'ADD':
      return parseCopy(line, about)
    case 'ENV':
    case 'LABEL':
    case 'ARG':
      checkFlags(line, [])
      return { ...about, type: name.toLowerCase() as 'env' | 'label' | 'arg', rest }
    case 'WORKDIR':
    case 'USER':
      checkFlags(line, [])
      return { ...about, type: name.toLowerCase() as 'workdir' | 'user', rest }
    case 'CMD':
    case 'ENTRYPOINT':
      return { ...about, type: name.toLowerCase() as 'cmd' | 'entrypoint', command: parseCommand(line) }
    case 'SHELL':
      return { ...about, type: 'shell', argv: jsonWords(rest) ?? refuseShell(line) }
    default:
      throw wrong(line.line, `${name} is not understood${name === 'ONBUILD' ? ': nothing is built from it by others' : ''}`)
  }
}

function refuseShell(line: DockerLine): never {
  throw wrong(line.line, 'SHELL is followed by a list, such as ["/bin/bash", "-c"]')
}

/** A mount that only keeps what is downloaded changes nothing in the result. */
function parseRun(line: DockerLine): Command {
  checkFlags(line, ['mount', 'network', 'security'])
  const refused = (line.flags.get('mount') ?? []).find((mount) => !/(?:^|,)type=(?:cache|tmpfs)(?:,|$)/.test(mount))
  if (refused !== undefined) throw wrong(line.line, `RUN --mount=${refused} is not understood; of mounts only caches and tmpfs are`)
  if ((line.flags.get('security') ?? []).includes('insecure')) throw wrong(line.line, 'RUN --security=insecure is not done here')
  const [document] = line.heredocs
  if (document && /^<<-?["']?[\w.]+["']?$/.test(line.rest)) return { kind: 'shell', text: document.text }
  const text = line.heredocs.reduce((whole, { name, text: inner }) => `${whole}\n${inner}${name}`, line.rest)
  return line.heredocs.length > 0 ? { kind: 'shell', text } : parseCommand(line)
}

function parseCommand({ rest }: DockerLine): Command {
  const argv = rest === '' ? [] : jsonWords(rest)
  return argv === undefined ? { kind: 'shell', text: rest } : { kind: 'argv', argv }
}

function parseCopy(line: DockerLine, about: Told): CopyInstruction {
  const isAdd = line.name === 'ADD'
  checkFlags(line, ['chown', 'chmod', 'link', ...(isAdd ? ['checksum', 'unpack'] : ['from', 'parents'])])
  if (line.flags.has('parents')) throw wrong(line.line, 'COPY --parents is not understood')
  const chmod = line.flags.get('chmod')?.at(-1)
  if (chmod !== undefined && !/^[0-7]{3,4}$/.test(chmod)) throw wrong(line.line, `--chmod=${chmod} is no number such as 755`)
  return { ...about, type: isAdd ? 'add' : 'copy', from: line.flags.get('from')?.at(-1), chmod, rest: line.rest, heredocs: line.heredocs }
}

function checkFlags({ line, name, flags }: DockerLine, known: readonly string[]): void {
  const strange = [...flags.keys()].find((flag) => !known.includes(flag))
  if (strange !== undefined) throw wrong(line, `${name} --${strange} is not understood`)
}
