import type { Command } from 'commander'
import { ownName } from './print.js'

const notes = (name: string): string => `
Listens at 127.0.0.1:7878 unless told otherwise. Whoever asks needs a key:
${name} keys create prints one. Another address than the loopback needs a key
first, and a certificate or --insecure. What callers may ask of the machine
itself (mounts, filters, drivers without walls) is what --policy says in so many
words. Certificates are read again when they change.

SIGTERM and Ctrl-C let what is under way end, for as long as --grace says; the
second ends it at once. Sandboxes are closed with the server.`

export interface ServeFlags {
  readonly listen?: string
  readonly socket?: string
  readonly tlsCert?: string
  readonly tlsKey?: string
  readonly clientCa?: string
  readonly allowOrigin?: readonly string[]
  readonly host?: readonly string[]
  readonly domain?: string
  readonly state?: string
  readonly policy?: string
  readonly insecure?: true
  readonly grace?: string
  readonly quiet?: true
}

const repeated = (value: string, all: readonly string[] = []): readonly string[] => [...all, value]

export function addServe(program: Command, finish: (code: number) => void): void {
  program
    .command('serve')
    .summary('be a server of sandboxes for many, over HTTP')
    .description('Serves sandboxes over HTTP and WebSockets, to whoever has a key.')
    .usage('[OPTIONS]')
    .optionsGroup('Where:')
    .option('--listen <ADDR:PORT>', 'an address and a port (127.0.0.1:7878)')
    .option('--socket <PATH>', 'a socket of this machine instead, mode 0600')
    .option('--host <NAME>', 'a name that it may be called by; repeatable', repeated)
    .option('--domain <NAME>', 'ports have names of their own below this one')
    .optionsGroup('For whom:')
    .option('--tls-cert <FILE>', 'a certificate with its chain, PEM')
    .option('--tls-key <FILE>', 'its key, PEM')
    .option('--client-ca <FILE>', 'whoever connects shows a certificate of these')
    .option('--allow-origin <ORIGIN>', 'pages of it may ask; repeatable', repeated)
    .option('--insecure', 'another address than the loopback without TLS')
    .optionsGroup('How:')
    .option('--policy <FILE|PRESET>', 'what no sandbox may exceed')
    .option('--state <DIR>', 'keys, tenants and the audit trail are kept there')
    .option('--grace <DURATION>', 'what is under way may take so long to end (10s)')
    .option('-q, --quiet', 'no line for each request')
    .helpOption('-h, --help', 'print this')
    .addHelpText('after', notes(ownName()))
    .action(async (flags: ServeFlags) => {
      const { serve } = await import('./commands/serve.js')
      finish(await serve(flags))
    })
}
