import { describe, expect, it } from 'vitest'
import { connectWarden } from '../../src/channel/index.js'
import { numbers, ScriptedWarden } from './scripted-warden.js'

describe('file rules', () => {
  it('are handed over after the filter and before anything is started', async () => {
    const peer = new ScriptedWarden()
    const connecting = connectWarden(peer.channel, {
      filter: Buffer.alloc(8),
      rules: [
        { access: 3, path: '/bin/ü' },
        { access: 6, path: '/' },
      ],
    })
    await peer.hear('configure')
    const expected = Buffer.concat([numbers(2, 3, 7), Buffer.from('/bin/ü'), numbers(6, 1), Buffer.from('/')])
    expect((await peer.hear('rules')).payload).toEqual(expected)
    peer.hello()
    await connecting
  })

  it('that are none are handed over too, for they allow nothing', async () => {
    const peer = new ScriptedWarden()
    void connectWarden(peer.channel, { rules: [] }).catch(() => {})
    expect((await peer.hear('rules')).payload).toEqual(numbers(0))
    peer.vanish()
  })

  it('that were not given are not spoken of', async () => {
    const peer = new ScriptedWarden()
    const connecting = connectWarden(peer.channel, { filter: Buffer.alloc(8) })
    await peer.hear('configure')
    peer.hello()
    ;(await connecting).close()
    await peer.hear('close')
    expect(peer.heard('rules')).toEqual([])
  })

  it.each([
    ['no access', { access: 0, path: '/usr' }],
    ['an unknown access', { access: 8, path: '/usr' }],
    ['a fraction of an access', { access: 1.5, path: '/usr' }],
    ['a path that is not from the root', { access: 3, path: 'usr' }],
    ['no path', { access: 3, path: '' }],
    ['a NUL in a path', { access: 3, path: '/a\0' }],
    ['too long a path', { access: 3, path: `/${'ü'.repeat(2048)}` }],
  ])('with %s are refused by their place, and nothing is sent', async (_name, rule) => {
    const peer = new ScriptedWarden()
    await expect(connectWarden(peer.channel, { rules: [{ access: 1, path: '/' }, rule] })).rejects.toMatchObject({
      code: 'invalid',
      message: expect.stringMatching(/^rules\[1\]/) as unknown,
    })
    expect(peer.heard('rules')).toEqual([])
  })

  it('beyond 4 MiB are refused', async () => {
    const rules = Array.from({ length: 1100 }, () => ({ access: 1, path: `/${'x'.repeat(4000)}` }))
    await expect(connectWarden(new ScriptedWarden().channel, { rules })).rejects.toMatchObject({ code: 'invalid' })
  })
})
