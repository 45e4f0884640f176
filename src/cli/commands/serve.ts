import { isIP } from 'node:net'
import { resolve } from 'node:path'
import { readPolicy } from '../../compose.js'
import { SandboxError } from '../../contract/errors.js'
import { durationSchema } from '../../contract/quantities.js'
import { parseWith } from '../../contract/refusal.js'
import { outliveStrays, type ServeOptions, startServing } from '../../serve.js'
import { exitCodes } from '../exit-codes.js'
import { refuseFlag } from '../flag-values.js'
import { watchInterrupts } from '../interrupts.js'
import { asTyped, inShell, say } from '../print.js'
import type { ServeFlags } from '../serve-options.js'

const usualPort = 7878
const graceSchema = durationSchema({ min: 0, max: 3_600_000, example: '10s' })
const usualGraceMs = 10_000

/** Resolves when it was told to stop, and nothing is left. */
export async function serve(flags: ServeFlags): Promise<number> {
  const graceMs = flags.grace === undefined ? usualGraceMs : parseWith(graceSchema, flags.grace, '--grace')
  const options = optionsOf(flags)
  using interrupts = watchInterrupts()
  const serving = await startServing(options)
  using _strays = await outliveStrays(process.stderr)
  say(`listening at ${serving.url}`)
  const inState = flags.state === undefined ? '' : `GLOVEBOX_SERVER_DIR=${inShell(resolve(flags.state))} `
  if (!serving.hasKeys) say(`there is no key yet: ${inState}${asTyped('glovebox keys create')}`)
  await new Promise<void>((stopped) => {
    interrupts.signal.addEventListener('abort', () => stopped(), { once: true })
    if (interrupts.signal.aborted) stopped()
  })
  say(`stopping; what is under way has ${graceMs / 1000} s`)
  await serving.close({ graceMs })
  return exitCodes.ok
}

function optionsOf(flags: ServeFlags): ServeOptions {
  const { host, allowOrigin, domain, state, policy, insecure, quiet } = flags
  const tls = tlsOf(flags)
  return {
    at: placeOf(flags),
    ...(tls && { tls }),
    ...(host && { hosts: host.map((name) => checkName('--host', name)) }),
    ...(allowOrigin && { origins: allowOrigin.map(checkOrigin) }),
    ...(domain !== undefined && { domain: checkName('--domain', domain) }),
    ...(state !== undefined && { state }),
    ...(policy !== undefined && { policy: readPolicy(policy) }),
    ...(insecure && { insecure }),
    ...(!quiet && { log: process.stderr }),
  }
}

function placeOf({ listen, socket }: ServeFlags): ServeOptions['at'] {
  if (socket !== undefined && listen !== undefined) throw refuseFlag('--socket', 'cannot be had together with --listen')
  if (socket !== undefined) return { socket: resolve(socket) }
  if (listen === undefined) return { host: '127.0.0.1', port: usualPort }
  const [, bracketed, plain, port = ''] = /^(?:\[([0-9a-fA-F:.]+)\]|([^:[\]]+)):(\d{1,5})$/.exec(listen) ?? []
  const host = bracketed ?? plain
  if (host === undefined || Number(port) > 65_535 || (host !== 'localhost' && isIP(host) === 0))
    throw refuseFlag('--listen', "expected an address and a port, such as '127.0.0.1:7878' or '[::1]:7878'")
  return { host, port: Number(port) }
}

function tlsOf({ tlsCert, tlsKey, clientCa }: ServeFlags): ServeOptions['tls'] {
  if (tlsCert === undefined && tlsKey === undefined && clientCa === undefined) return undefined
  if (tlsCert === undefined || tlsKey === undefined)
    throw refuseFlag(tlsCert === undefined ? '--tls-cert' : '--tls-key', 'a certificate and its key belong together')
  return { cert: tlsCert, key: tlsKey, ...(clientCa !== undefined && { clientCa }) }
}

function checkName(flag: string, name: string): string {
  if (/^[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*$/.test(name)) return name
  throw refuseFlag(flag, "expected the name of a host in lower case, such as 'sandboxes.example.com'")
}

function checkOrigin(origin: string): string {
  if (URL.canParse(origin) && new URL(origin).origin === origin) return origin
  throw new SandboxError('invalid', "--allow-origin: expected an origin, such as 'https://example.com'", { hint: 'glovebox serve --help' })
}
