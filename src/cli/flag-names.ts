/** The fields of specs and runs under the names that the command line has for them. */
const flagNames: Readonly<Record<string, string>> = {
  cwd: '--workdir',
  template: '--template',
  name: '--name',
  user: '--user',
  driver: '--driver',
  minTier: '--min-tier',
  env: '--env',
  command: 'COMMAND',
  'limits.memory': '--memory',
  'limits.cpus': '--cpus',
  'limits.time': '--timeout',
  'limits.disk': '--disk',
  'limits.processes': '--pids',
  'limits.output': '--output',
}

/** A field where our messages name one: at the start of a sentence or a clause. What a user wrote stands behind it and stays as it is. */
const field = /(^|[:;.] )(limits\.[a-z]+|[a-zA-Z]+)(?:\.([^\s:]+)|\[(\d+)\])?(?=: | cannot be enforced: )/g

/** 'cwd: /x does not exist' → '--workdir: /x does not exist'. */
export function nameFlags(message: string): string {
  return message.replace('(minTier)', '(--min-tier)').replace(field, (whole: string, ...groups: (string | undefined)[]) => {
    const [before = '', name = '', key, index = '0'] = groups
    const flag = flagNames[name]
    if (flag === undefined) return whole
    if (key !== undefined) return `${before}${flag} ${key}`
    return `${before}${index === '0' ? flag : `argument ${index} of ${flag}`}`
  })
}
