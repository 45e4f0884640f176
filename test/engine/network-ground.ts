/** A platform whose sandboxes can reach servers of this test: names that only it resolves, and an operator's policy that names the loopback they are on. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { engineOptions } from '../../src/compose.js'
import type { Platform } from '../../src/contract/platform.js'
import type { PolicyInput } from '../../src/contract/policy.js'
import { createEgressSource } from '../../src/egress/source.js'
import { Engine } from '../../src/engine/engine.js'
import { parseAddress } from '../../src/policy/network-address.js'
import { testAuthority, type TestAuthority } from '../egress/front-servers.js'

export interface NetworkGround extends AsyncDisposable {
  readonly platform: Platform
  /** Where it keeps what can be built again. */
  readonly folder: string
  /** Who vouches for the servers, and is trusted by the platform and in its cells. */
  readonly authority: TestAuthority
  /** Names that were asked for, on the host. */
  readonly resolved: readonly string[]
  /** Why no sandbox has a network here; undefined when they can. */
  readonly without: string | undefined
  /** Why programs that know no proxy get nowhere; undefined when they do. */
  readonly withoutDirect: string | undefined
}

interface GroundOptions {
  readonly hosts?: Readonly<Record<string, string>>
  readonly policy?: PolicyInput
  readonly env?: Readonly<Record<string, string>>
}

/** Every name below example.com is on loopback unless told otherwise; other names have no address. */
export async function openGround({ hosts = {}, policy = {}, env }: GroundOptions = {}): Promise<NetworkGround> {
  const folder = mkdtempSync(join(tmpdir(), 'glovebox-network-'))
  const authority = testAuthority()
  const resolved: string[] = []
  const resolver = {
    resolve: (name: string) => {
      resolved.push(name)
      const address = parseAddress(hosts[name] ?? (name.endsWith('.example.com') ? '127.0.0.1' : ''))
      return address ? Promise.resolve([address]) : Promise.reject(new Error(`no address for ${name}`))
    },
  }
  const egress = createEgressSource({ folder: () => folder, authority: { folder }, resolver, trusted: [authority.certificate], ...(env && { env }) })
  const ceiling = { ...policy.ceiling, network: { private: ['127.0.0.0/8'] } }
  const platform = new Engine({ ...engineOptions({ policy: { ...policy, ceiling } }), egress })
  const [probe] = await platform.probe()
  const whyNot = (feature: 'network' | 'direct-network'): string | undefined => {
    const found = probe?.features[feature]
    return found?.available ? undefined : (found?.why ?? 'there is no driver')
  }
  return {
    platform,
    folder,
    authority,
    resolved,
    without: whyNot('network'),
    withoutDirect: whyNot('network') ?? whyNot('direct-network'),
    [Symbol.asyncDispose]: async () => {
      await platform[Symbol.asyncDispose]()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
