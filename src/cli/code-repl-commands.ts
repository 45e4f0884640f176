/** What a session knows beside code: words that begin with a dot. */
import { writeFileSync } from 'node:fs'
import { resolve } from 'node:path'
import type { Language } from '../contract/code.js'
import { SandboxError } from '../contract/errors.js'
import type { Platform } from '../contract/platform.js'
import { parseLanguage } from './code-language.js'
import type { CodeSession } from './code-session.js'
import { fromFile } from './code-sources.js'
import { say } from './print.js'
import { bytesInWords } from './words.js'

export interface SessionState {
  readonly session: CodeSession
  readonly platform: Platform
  readonly id: string
  readonly signal: AbortSignal
  language: Language
  /** Of the next execution. */
  count: number
  isOver: boolean
  /** What ran without an error, in order. */
  readonly done: { readonly language: Language; readonly code: string }[]
}

interface DotCommand {
  readonly form: string
  readonly means: string
  run(rest: string, state: SessionState): Promise<void> | void
}

const commands: Readonly<Record<string, DotCommand>> = {
  '.help': { form: '.help', means: 'this', run: () => help() },
  '.restart': {
    form: '.restart',
    means: 'begin again with an empty memory; files stay',
    run: async (_rest, { session, language }) => {
      await session.restart(language)
      say(`${language} begins again`)
    },
  },
  '.lang': {
    form: '.lang LANG',
    means: 'go on in python, javascript, typescript or bash',
    run: (rest, state) => {
      if (rest !== '') state.language = parseLanguage(rest)
      say(`the language is ${state.language}`)
    },
  },
  '.load': { form: '.load FILE', means: 'run a file of this machine', run: load },
  '.save': { form: '.save FILE', means: 'write what ran without an error to a file of this machine', run: save },
  '.files': { form: '.files [DIR]', means: 'what is in the workspace', run: listFiles },
  '.exit': {
    form: '.exit',
    means: 'leave, as Ctrl-D does',
    run: (_rest, state) => {
      state.isOver = true
    },
  },
}

/** False for what is code. */
export async function runCommandLine(line: string, state: SessionState): Promise<boolean> {
  const [, name = '', rest = ''] = /^(\.[a-z]+)(?:\s+(\S.*?))?\s*$/.exec(line) ?? []
  const command = Object.hasOwn(commands, name) ? commands[name] : undefined
  if (command) await command.run(rest, state)
  else if (name === '' || state.language === 'bash') return false
  else throw new SandboxError('invalid', `there is no ${name}`, { hint: '.help' })
  return true
}

function help(): void {
  for (const { form, means } of Object.values(commands)) say(`${form.padEnd(12)} ${means}`)
  say('Ctrl-C interrupts what runs and drops what is typed; a blank line ends a block')
}

async function load(file: string, state: SessionState): Promise<void> {
  if (file === '') throw new SandboxError('invalid', '.load: FILE is missing', { hint: '.load FILE' })
  const source = fromFile(file, undefined)
  const code = await source.read()
  const ending = await state.session.run({ code, language: source.language, name: file })
  state.count += 1
  if (ending.status === 'ok') state.done.push({ language: source.language, code })
}

function save(file: string, { done, language }: SessionState): void {
  if (file === '') throw new SandboxError('invalid', '.save: FILE is missing', { hint: '.save FILE' })
  const path = resolve(file)
  const code = done.filter((each) => each.language === language).map((each) => each.code.trimEnd())
  try {
    writeFileSync(path, `${code.join('\n\n')}\n`, { flag: 'wx' })
  } catch (error) {
    const { code: why = String(error) } = error as NodeJS.ErrnoException
    throw new SandboxError('conflict', `.save: ${path} ${why === 'EEXIST' ? 'is there already' : `cannot be written: ${why}`}`, {
      hint: '.save another-file',
      cause: error,
    })
  }
  say(`wrote ${path}`)
}

const mostListed = 200

async function listFiles(folder: string, { platform, id, signal }: SessionState): Promise<void> {
  let count = 0
  for await (const entry of platform.files.of(id).list(folder === '' ? '.' : folder, { signal })) {
    count += 1
    if (count > mostListed) break
    say(`${entry.type === 'folder' ? `${entry.name}/` : entry.name}${entry.type === 'file' ? `  ${bytesInWords(entry.size)}` : ''}`)
  }
  if (count === 0) say('nothing is there')
  if (count > mostListed) say('and more')
}
