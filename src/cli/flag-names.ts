/** The fields of specs and runs under the names that the command line has for them. */
const flagNames: Readonly<Record<string, string>> = {
  cwd: '--workdir',
  template: '--template',
  name: '--name',
  user: '--user',
  root: '--root',
  mounts: '--mount',
  commands: '--command',
  'network.allow': '--allow',
  'network.block': '--block',
  seccomp: '--seccomp',
  policy: '--policy',
  lifetime: 'the lifetime that --timeout needs',
  driver: '--driver',
  minTier: '--min-tier',
  env: '--env',
  command: 'COMMAND',
  'limits.memory': '--memory',
  'limits.cpus': '--cpus',
  'limits.cpuTime': '--cpu-time',
  'limits.time': '--timeout',
  'limits.disk': '--disk',
  'limits.inodes': '--inodes',
  'limits.fileSize': '--file-size',
  'limits.openFiles': '--open-files',
  'limits.processes': '--pids',
  'limits.readRate': '--read-rate',
  'limits.writeRate': '--write-rate',
  'limits.output': '--output',
}

/** A field where our messages name one: at the start of a sentence or a clause. What a user wrote stands behind it and stays as it is. */
const field = /(^|[:;.] )((?:limits|network)\.[a-zA-Z]+|[a-zA-Z]+)(?:\[(\d+)\])?(?:\.([^\s:]+))?(?=: | cannot be enforced: )/g

/** Where a field is named in other words. */
const otherWords = [
  [/(?<=^|[:;.] )mounts are not available: /g, '--mount is not available: '],
  [/(?<=^|[:;.] )mounts with an overlay are not available: /g, '--here, or --mount with :overlay, is not available: '],
  [/(?<=^|[:;.] )mounts that can be written to are not available: /g, '--mount with :rw is not available: '],
  [/(?<=^|[:;.] )network is not available: /g, '--allow is not available: '],
  ['(minTier)', '(--min-tier)'],
  [/(?<=^|[:;.] )seccomp profile (?=\S)/g, '--seccomp: profile '],
] as const

/** 'cwd: /x does not exist' → '--workdir: /x does not exist'. */
export function nameFlags(message: string): string {
  const singular = otherWords.reduce((text, [words, flag]) => text.replace(words, flag), message)
  return singular.replace(field, (whole: string, ...groups: (string | undefined)[]) => {
    const [before = '', name = '', index, key] = groups
    const flag = flagNameOf(name)
    return flag === undefined ? whole : `${before}${nth(flag, index)}${key === undefined ? '' : ` ${key}`}`
  })
}

/** What a flag is called here: '--memory' of 'limits.memory'. */
function flagNameOf(name: string): string | undefined {
  return Object.hasOwn(flagNames, name) ? flagNames[name] : undefined
}

/** One of several: an argument, or a flag that was repeated. */
function nth(flag: string, index = '0'): string {
  if (index === '0') return flag
  return flag === 'COMMAND' ? `argument ${index} of COMMAND` : `${flag} number ${Number(index) + 1}`
}
