import { randomBytes } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import type { NetworkRecord } from '../../src/contract/network.js'
import { Sandbox } from '../../src/sandbox/index.js'
import { descendantsOf } from '../../src/sys/posture/process-tree.js'
import { type NetworkGround, openGround } from '../engine/network-ground.js'
import { openSite, type Site } from './clients-site.js'

let ground: NetworkGround
let site: Site
const secret = `Bearer ${randomBytes(24).toString('hex')}`

beforeAll(async () => {
  ground = await openGround({ policy: { defaults: { limits: { cpus: 2 } } }, env: { API_TOKEN: secret } })
  site = await openSite(ground.authority)
})
afterAll(async () => {
  await ground[Symbol.asyncDispose]()
  await site[Symbol.asyncDispose]()
})
beforeEach(({ skip }) => {
  if (ground.without !== undefined) skip(ground.without)
})

/** Regions that hold what programs read and write. Undefined: the process is gone, or this user may not look. */
async function memoryHolds(pid: number, needles: readonly string[]): Promise<boolean[] | undefined> {
  const found = needles.map(() => false)
  try {
    const maps = readFileSync(`/proc/${pid}/maps`, 'latin1').split('\n')
    await using memory = await open(`/proc/${pid}/mem`, 'r')
    for (const line of maps) {
      const [, from = '0', to = '0'] = /^([0-9a-f]+)-([0-9a-f]+) rw/.exec(line) ?? []
      const size = Number(`0x${to}`) - Number(`0x${from}`)
      if (size === 0) continue
      const piece = Buffer.alloc(size)
      const { bytesRead } = await memory.read(piece, 0, size, Number(`0x${from}`)).catch(() => ({ bytesRead: 0 }))
      needles.forEach((needle, index) => (found[index] ||= piece.subarray(0, bytesRead).includes(needle)))
    }
    return found
  } catch {
    return undefined
  }
}

/** Keeps a connection, and all that was said over it, in its memory. */
const keeper = `import os, sys, time, urllib.request
marker = 'marker-' + os.environ['HALF'] + '-whole'
request = urllib.request.Request(os.environ['URL'] + '/hello.txt', headers={'x-marker': marker, 'authorization': 'placeholder'})
answer = urllib.request.urlopen(request)
print(answer.read().decode(), answer.headers, flush=True)
time.sleep(60)`

/** Names what holds the two halves of a text one behind the other; it has them apart only. */
const search = `import glob, os
halves = [os.environ[name].encode() for name in 'AB']
open('/tmp/control', 'wb').writelines(halves)
def holds(path):
    try:
        with open(path, 'rb') as file: content = file.read(2**24)
    except OSError: return False
    at = content.find(halves[0])
    while at >= 0:
        end = at + len(halves[0])
        if content[end:end + len(halves[1])] == halves[1]: return True
        at = content.find(halves[0], end)
    return False
paths = glob.glob('/proc/[0-9]*/environ') + glob.glob('/proc/[0-9]*/cmdline')
for top in ['/workspace', '/tmp', '/home', '/etc', '/var/lib', '/run', '/dev/shm']:
    for folder, _, names in os.walk(top): paths += [os.path.join(folder, name) for name in names if os.path.isfile(os.path.join(folder, name))]
for path in paths:
    if holds(path): print(path)`

test('a credential is at the server, and neither in the cell nor in anything that is written down', async () => {
  const allowed = `api.example.com:${site.port}`
  await using sandbox = await Sandbox.create({
    platform: ground.platform,
    network: { allow: [allowed, `other.example.com:${site.port}`], credentials: [{ host: allowed, header: 'authorization', env: 'API_TOKEN' }] },
  })
  const records: NetworkRecord[] = []
  const reading = (async () => {
    for await (const record of sandbox.network.log()) records.push(record)
  })()
  const process = await sandbox.spawn(['python3', '-c', keeper], { env: { URL: `https://${allowed}`, HALF: 'one' } })
  await expect.poll(() => site.visits.length).toBeGreaterThan(0)
  expect(site.visits.at(-1)).toMatchObject({ host: allowed, headers: { authorization: secret, 'x-marker': 'marker-one-whole' } })

  // Everything that runs for this test outside of it: the cell's programs, and our own native ones.
  const looked = await Promise.all(descendantsOf(globalThis.process.pid).map((pid) => memoryHolds(pid, [secret, 'marker-one-whole'])))
  const seen = looked.filter((each) => each !== undefined)
  expect(seen.some(([, hasMarker]) => hasMarker)).toBe(true)
  expect(seen.some(([hasSecret]) => hasSecret)).toBe(false)

  const [first = '', second = ''] = [secret.slice(7, 30), secret.slice(30)]
  // One file has it, so that the search is known to find what is there.
  const searched = await sandbox.run(['python3', '-c', search], { env: { A: first, B: second } })
  expect(searched.stdout.split('\n')).toEqual(['/tmp/control', ''])

  expect(JSON.stringify([await sandbox.info(), await sandbox.receipt(), await sandbox.network.summary()])).not.toContain(first)
  const arguments_ = readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map((pid) => readQuietly(`/proc/${pid}/cmdline`))
  expect(arguments_.some((line) => line.includes(first))).toBe(false)
  await process.kill()

  const elsewhere = await sandbox.run(['curl', '-sS', '-H', 'authorization: own', `https://other.example.com:${site.port}/hello.txt`])
  expect(elsewhere.stdout).toBe('hello from outside\n')
  expect(site.visits.at(-1)).toMatchObject({ headers: { authorization: 'own' } })
  const away = encodeURIComponent(`https://other.example.com:${site.port}/hello.txt`)
  await sandbox.run(['curl', '-sS', '-L', `https://${allowed}/redirect?to=${away}`])
  expect(site.visits.slice(-2).map(({ host, headers }) => [host.split('.')[0], headers.authorization])).toEqual([
    ['api', secret],
    ['other', undefined],
  ])
  await sandbox.close()
  await reading
  expect(records.length).toBeGreaterThanOrEqual(4)
  expect(JSON.stringify(records)).not.toContain(first)
})

function readQuietly(path: string): string {
  try {
    return readFileSync(path, 'latin1')
  } catch {
    return ''
  }
}
