import { extname } from 'node:path'
import { type Language, languages } from '../contract/code.js'
import { SandboxError } from '../contract/errors.js'

/** Names that people have for languages beside ours. */
const otherNames: Readonly<Record<string, Language>> = {
  py: 'python',
  python3: 'python',
  js: 'javascript',
  node: 'javascript',
  ts: 'typescript',
  sh: 'bash',
  shell: 'bash',
}

const byExtension: Readonly<Record<string, Language>> = {
  '.py': 'python',
  '.js': 'javascript',
  '.mjs': 'javascript',
  '.cjs': 'javascript',
  '.ts': 'typescript',
  '.mts': 'typescript',
  '.sh': 'bash',
  '.bash': 'bash',
}

export function parseLanguage(name: string): Language {
  const found = languages.find((language) => language === name) ?? (Object.hasOwn(otherNames, name) ? otherNames[name] : undefined)
  if (found) return found
  throw new SandboxError('invalid', `--language: there is no '${name.slice(0, 40)}'; expected one of ${languages.join(', ')}`, { hint: 'glovebox code --help' })
}

/** By the file's name. */
export function languageOfFile(file: string): Language {
  const extension = extname(file).toLowerCase()
  const found = byExtension[extension]
  if (found) return found
  const known = Object.entries(byExtension)
    .map(([each, language]) => `${each} (${language})`)
    .join(', ')
  const problem = extension === '' ? 'has no extension' : `nobody knows the extension '${extension.slice(0, 20)}'`
  throw new SandboxError('invalid', `${file}: ${problem}, so its language must be stated with -l; known are ${known}`, {
    hint: `glovebox code -l python ${file}`,
  })
}
