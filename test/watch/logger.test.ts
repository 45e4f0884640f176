import { PassThrough } from 'node:stream'
import { describe, expect, test } from 'vitest'
import { createLogger, type LogLevel } from '../../src/watch/logger.js'

function logged(level?: LogLevel) {
  const lines: string[] = []
  const target = { write: (line: string) => lines.push(line) > 0, once: () => undefined }
  const redact = (text: string): string => text.replace(/gbx_\w+/g, '(redacted)')
  return {
    lines,
    logger: createLogger({ target, redact, ...(level && { level }) }),
    told: () => lines.map((line) => JSON.parse(line) as Record<string, unknown>),
  }
}

describe('the log', () => {
  test('is one JSON object a line, whatever is in it', () => {
    const { logger, lines, told } = logged()
    logger.with({ request: 'r1' }).warn('line\nbreak \u001b[31m', { status: 503, ok: false, gone: undefined })
    expect(lines).toHaveLength(1)
    expect(lines[0]?.match(/\n/g)).toHaveLength(1)
    expect(lines[0]).not.toContain('\u001b')
    expect(told()[0]).toEqual({ time: expect.any(String) as string, level: 'warn', message: 'line\nbreak \u001b[31m', request: 'r1', status: 503, ok: false })
  })

  test('has no line below its level', () => {
    const { logger, told } = logged('warn')
    logger.debug('a')
    logger.info('b')
    logger.warn('c')
    logger.error('d')
    expect(told().map(({ message }) => message)).toEqual(['c', 'd'])
  })

  test('has no secret: not by its form, not by its name, and not in half', () => {
    const { logger, lines } = logged()
    logger.info('key gbx_abc_SECRET', { authorization: 'Bearer plain', 'api-key': 'plain', sessionToken: 'plain', path: '/x?k=gbx_abc_SECRET' })
    logger.info(`${'x'.repeat(1990)} gbx_abc_SECRET`)
    expect(lines.join('')).not.toMatch(/SECRET|plain|gbx_/)
  })

  test('cannot be made to say what we say: time, level and message are ours', () => {
    const { logger, told } = logged()
    logger.info('real', { level: 'error', message: 'forged', time: 'never' })
    expect(told()[0]).toMatchObject({ level: 'info', message: 'real' })
  })

  test('drops lines while its reader is behind, holds nobody up, and says how many were dropped', async () => {
    const target = new PassThrough({ highWaterMark: 10 })
    const logger = createLogger({ target, redact: (text) => text })
    for (let n = 0; n < 100; n += 1) logger.info(`line ${n}`)
    expect(target.readableLength + target.writableLength).toBeLessThan(1000)
    target.read()
    target.read()
    await new Promise((resolve) => setImmediate(resolve))
    logger.info('after')
    expect(JSON.parse(String(target.read()))).toMatchObject({ message: 'after', dropped: 99 })
  })
})
