import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import type { Receipt } from '../../src/contract/receipt.js'
import { Sandbox } from '../../src/sandbox/index.js'
import { hasIpv6 } from '../../src/sys/posture/routes.js'
import { type NetworkGround, openGround } from './network-ground.js'

let ground: NetworkGround

beforeAll(async () => {
  ground = await openGround()
})
afterAll(() => ground[Symbol.asyncDispose]())
beforeEach(({ skip }) => {
  if (ground.without !== undefined) skip(ground.without)
})

const none = { tcp: 0, tcp6: 0, udp: 0, udp6: 0, other: 0 }
const six = hasIpv6()

/** By the proxy on both loopbacks; where programs need none, for DNS and at so many ports. */
function doors(ports: number): object {
  const streams = ground.withoutDirect === undefined ? 1 + ports : 0
  const datagrams = ground.withoutDirect === undefined ? 1 : 0
  return six ? { ...none, tcp: 1, tcp6: 1 + streams, udp6: datagrams } : { ...none, tcp: 1 + streams, udp: datagrams }
}

const socketsOf = (receipt: Receipt | undefined) => receipt?.controls.filter(({ control }) => control === 'sockets')
const found = (...values: object[]) =>
  values.map((value) => expect.objectContaining({ evidence: 'kernel', verdict: 'proven', enforced: value, requested: value }) as unknown)

/** Listens and connects to itself, and says so. */
const busy = `import socket, time
servers = [socket.create_server(('127.0.0.1', 0)) for _ in range(5)]
clients = [socket.create_connection(each.getsockname()) for each in servers]
print('busy', flush=True); time.sleep(60)`

test('without a network nothing listens, and the kernel said so; what programs do later is theirs', async () => {
  await using sandbox = await Sandbox.create({ platform: ground.platform })
  expect(socketsOf(await sandbox.receipt())).toEqual(found(none))
  const process = await sandbox.spawn(['python3', '-c', busy])
  for await (const _ of process.stdout) break
  expect(socketsOf(await sandbox.receipt())).toEqual(found(none))
})

test('with one, the doors of the way out listen and nothing else', async () => {
  await using sandbox = await Sandbox.create({ platform: ground.platform, network: { allow: ['shop.example.com:8080'] } })
  const process = await sandbox.spawn(['python3', '-c', busy])
  for await (const _ of process.stdout) break
  expect(socketsOf(await sandbox.receipt())).toEqual(found(doors(0)))
})

test('in a liner also at the ports of its rules, and of those who are asked', async ({ skip }) => {
  const liners = (await ground.platform.probe())[0]?.features.liners
  if (!liners?.available) skip(liners?.why ?? 'there is no driver')
  const receiptOf = async (allow: string[] | undefined, onRequest?: () => 'deny'): Promise<Receipt | undefined> => {
    const sandbox = allow === undefined ? {} : { network: { allow } }
    return (await Sandbox.run(['true'], { platform: ground.platform, fresh: 'liner', receipt: true, sandbox, ...(onRequest && { onRequest }) })).receipt
  }
  for (const _ of [1, 2, 3]) {
    expect(socketsOf(await receiptOf(undefined))).toEqual(found(none, none))
    expect(socketsOf(await receiptOf(['a.example.com:8080', 'b.example.com:3128', 'c.example.com:53']))).toEqual(found(doors(0), doors(1)))
    expect(socketsOf(await receiptOf(['a.example.com'], () => 'deny'))).toEqual(found(doors(0), doors(2)))
    expect(socketsOf(await receiptOf([]))).toEqual(found(doors(0), doors(0)))
    // The look was at the first of its kind, which nobody was asked about; where doors were moved since, runs go on.
    expect(socketsOf(await receiptOf([], () => 'deny'))).toHaveLength(2)
  }
})
