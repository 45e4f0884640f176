import { expect } from 'vitest'
import { createBwrapDriver } from '../../src/drivers/bwrap/driver.js'
import { testUnless } from '../unless.js'
import { openLined } from './lined.js'

const { available, obstacles, features } = await createBwrapDriver().probe()
const lacking = [features.liners, features['direct-network']].flatMap((each) => (each.available ? [] : [each.why]))
const why = available ? (lacking[0] ?? false) : (obstacles[0]?.why ?? 'no bwrap')

/** By proxy, without one, and by name: what each is answered. */
const script = `
import os, socket, sys
def ask(address, port, what):
    with socket.create_connection((address, port), 10) as s:
        s.sendall(what)
        return s.recv(4096).split(b'\\r\\n')[0].decode()
print(ask('127.0.0.1', 3128, b'GET http://example.org/ HTTP/1.1\\r\\nHost: example.org\\r\\n\\r\\n'))
print(ask('192.0.2.7', 80, b'GET / HTTP/1.1\\r\\nHost: 192.0.2.7\\r\\n\\r\\n'))
try: socket.getaddrinfo('example.org', 80)
except socket.gaierror as error: print('no name')
print(os.environ['HTTPS_PROXY'])
print('forked' if 'colorsys' in sys.modules else 'started')`

testUnless(why)('a fork of a zygote finds the same doors as a program that was just started, and both are refused in words', async () => {
  await using lined = await openLined({ network: { allow: ['example.com:80'] } })
  const command = ['/usr/bin/python3', '-c', script]
  const started = await lined.run(command)
  await lined.sandbox.ensureZygote({ language: 'python', imports: ['colorsys'] })
  const forked = await lined.run(command)
  expect([started.err, forked.err]).toEqual(['', ''])
  const expected = /^HTTP\/1\.1 403 .*\nHTTP\/1\.1 403 .*\nno name\nhttp:\/\/127\.0\.0\.1:3128\n(forked|started)\n$/
  expect([started, forked].map(({ out }) => expected.exec(out)?.[1])).toEqual(['started', 'forked'])
})

testUnless(why)('ports of rules that are replaced are listened at in the next liner, also where one was made ready before', async () => {
  await using lined = await openLined({ network: { allow: ['example.com:80'] } })
  const connect = async (port: number): Promise<string> =>
    (
      await lined.run([
        '/usr/bin/python3',
        '-c',
        `import socket\ntry: socket.create_connection(('192.0.2.7', ${port}), 10); print('in')\nexcept OSError as e: print(e.errno)`,
      ])
    ).out
  const ways = []
  for (let each = 0; each < 4; each += 1) ways.push(await connect(8443))
  await lined.sandbox.changeNetwork({ allow: ['example.com:8443'] })
  for (let each = 0; each < 3; each += 1) ways.push(await connect(8443))
  expect(ways).toEqual([...Array<string>(4).fill('111\n'), ...Array<string>(3).fill('in\n')])
})
