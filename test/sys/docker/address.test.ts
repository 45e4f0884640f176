import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { describeAddress, engineAddress } from '../../../src/sys/docker/address.js'

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'gbx-address-'))
})
afterEach(() => rmSync(folder, { recursive: true }))

describe('the address of an engine', () => {
  test('is the usual socket, or what this user has, unless DOCKER_HOST names another', () => {
    writeFileSync(join(folder, 'docker.sock'), '')
    expect(engineAddress({ DOCKER_HOST: 'unix:///x/y.sock' })).toEqual({ kind: 'socket', path: '/x/y.sock' })
    expect(engineAddress({ DOCKER_HOST: 'tcp://engine.example:2375' })).toEqual({ kind: 'tcp', host: 'engine.example', port: 2375, tls: undefined })
    expect(describeAddress(engineAddress({ DOCKER_HOST: 'tcp://[::1]' }))).toBe('tcp://[::1]:2375')
    expect(['/var/run/docker.sock', join(folder, 'docker.sock')]).toContain((engineAddress({ XDG_RUNTIME_DIR: folder }) as { path: string }).path)
  })

  test('with TLS has who is trusted and who we are, and another port', () => {
    for (const name of ['ca', 'cert', 'key']) writeFileSync(join(folder, `${name}.pem`), name)
    const address = engineAddress({ DOCKER_HOST: 'tcp://engine.example', DOCKER_TLS_VERIFY: '1', DOCKER_CERT_PATH: folder })
    expect(address).toEqual({
      kind: 'tcp',
      host: 'engine.example',
      port: 2376,
      tls: { ca: Buffer.from('ca'), cert: Buffer.from('cert'), key: Buffer.from('key') },
    })
  })

  test('that asks for TLS without certificates is refused, not spoken to in the clear', () => {
    const ask = () => engineAddress({ DOCKER_HOST: 'tcp://engine.example', DOCKER_TLS_VERIFY: '1', DOCKER_CERT_PATH: folder })
    expect(ask).toThrow(expect.objectContaining({ code: 'invalid', message: expect.stringContaining('ca.pem'), hint: `ls -l ${folder}` }))
  })

  test.each(['engine', 'ssh://root@engine', 'unix://', 'tcp://'])('%s is refused, with a hint', (given) => {
    expect(() => engineAddress({ DOCKER_HOST: given })).toThrow(
      expect.objectContaining({ code: 'invalid', hint: 'export DOCKER_HOST=unix:///var/run/docker.sock' }),
    )
  })
})
