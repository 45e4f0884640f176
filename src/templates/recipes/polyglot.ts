import type { Recipe } from '../../contract/templates.js'
import { baseChecks, baseEnv, baseLinks, basePackages, baseWithout } from './base.js'

/** Perl is a language here, not only what installs packages. */
const needed: readonly string[] = ['perl', 'perl-base']

export const polyglot: Recipe = {
  name: 'polyglot',
  summary: 'Python, Node.js, Ruby, Perl, PHP, Lua and C',
  packages: [...basePackages, 'gcc', 'libc6-dev', 'lua5.4', 'make', 'nodejs', 'perl', 'php-cli', 'python-is-python3', 'python3', 'ruby'],
  // Documents of libraries, and what only asks for packages.
  without: [...baseWithout.filter((name) => !needed.includes(name)), 'libjs-highlight.js', 'php-common', 'psmisc', 'rubygems-integration', 'ucf'],
  links: [
    ...baseLinks,
    { path: 'usr/bin/cc', target: 'gcc' },
    { path: 'usr/bin/lua', target: 'lua5.4' },
    ...['8.2', '8.3', '8.4'].map((version) => ({ path: 'usr/bin/php', target: `php${version}` })),
  ],
  env: baseEnv,
  checks: [
    ...baseChecks,
    ['python3', '-c', 'import ssl, sqlite3'],
    ['node', '-e', 'require("node:crypto").randomUUID()'],
    ['ruby', '-e', 'require "json"; exit(JSON.parse("[1]") == [1])'],
    ['perl', '-e', 'use strict; use List::Util "sum"; exit(sum(1, 2) - 3)'],
    ['php', '-r', 'exit(strlen("ok") - 2);'],
    ['lua', '-e', 'os.exit(1 + 1 == 2)'],
    ['sh', '-c', 'cd /tmp && echo "int main(void) { return 0; }" > a.c && cc a.c -o a.out && ./a.out'],
  ],
  diskBytes: 1500 * 2 ** 20,
}
