/** What every template has: a shell and the tools that scripts take for granted. */
export const basePackages = [
  'base-files',
  'bash',
  'ca-certificates',
  'coreutils',
  'dash',
  'diffutils',
  'findutils',
  'grep',
  'gzip',
  'hostname',
  'less',
  'libc-bin',
  'mawk',
  'procps',
  'sed',
  'tar',
  'tzdata',
  'util-linux',
] as const

/** What only installs, starts services, or asks questions. */
export const baseWithout = [
  'adduser',
  'cdebconf',
  'debconf',
  'dpkg',
  'init-system-helpers',
  'libpam-runtime',
  'libpam0g',
  'lsb-base',
  'openssl',
  'passwd',
  'perl',
  'perl-base',
  'sysvinit-utils',
] as const

/** Debian's alternatives, decided. */
export const baseLinks = [
  { path: 'usr/bin/awk', target: 'mawk' },
  { path: 'usr/bin/which', target: 'which.debianutils' },
  { path: 'usr/bin/pager', target: 'less' },
] as const

const basePath = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'
export const baseEnv = { PATH: basePath, LANG: 'C.UTF-8' } as const

export const baseChecks: readonly (readonly [string, ...string[]])[] = [
  ['bash', '-c', 'set -o pipefail; printf "b\\na\\n" | sort | head -n 1 | grep -q a && awk "BEGIN { exit 0 }" && which sed > /dev/null'],
]
