import { describe, expect, test } from 'vitest'
import { expose } from '../../src/watch/exposition.js'
import { Registry } from '../../src/watch/registry.js'

function example(): Registry {
  const registry = new Registry()
  registry.counter({ name: 'gb_runs', help: 'Runs that "ended"\nso far', labels: ['kind', 'outcome'] }).add({ kind: 'run', outcome: 'exi"t\\ed\n' }, 3)
  registry.gauge({ name: 'gb_live', help: 'Live' }).set(2)
  const times = registry.histogram({ name: 'gb_seconds', help: 'Times', labels: ['driver'], buckets: [0.1, 1] })
  for (const value of [0.05, 0.1, 0.5, 7]) times.observe(value, { driver: 'bwrap' })
  return registry
}

describe('metrics as text', () => {
  test('are the Prometheus format 0.0.4 unless asked otherwise', () => {
    const { contentType, text } = expose(example().read())
    expect(contentType).toBe('text/plain; version=0.0.4; charset=utf-8')
    expect(text).toBe(
      [
        '# HELP gb_live Live',
        '# TYPE gb_live gauge',
        'gb_live 2',
        '# HELP gb_runs_total Runs that "ended"\\nso far',
        '# TYPE gb_runs_total counter',
        'gb_runs_total{kind="run",outcome="exi\\"t\\\\ed\\n"} 3',
        '# HELP gb_seconds Times',
        '# TYPE gb_seconds histogram',
        'gb_seconds_bucket{driver="bwrap",le="0.1"} 2',
        'gb_seconds_bucket{driver="bwrap",le="1"} 3',
        'gb_seconds_bucket{driver="bwrap",le="+Inf"} 4',
        'gb_seconds_sum{driver="bwrap"} 7.65',
        'gb_seconds_count{driver="bwrap"} 4',
        '',
      ].join('\n'),
    )
  })

  test('are OpenMetrics for a reader that prefers it', () => {
    const prometheus =
      'application/openmetrics-text;version=1.0.0;q=0.5,application/openmetrics-text;version=0.0.1;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2'
    const { contentType, text } = expose(example().read(), prometheus)
    expect(contentType).toBe('application/openmetrics-text; version=1.0.0; charset=utf-8')
    const lines = text.split('\n')
    expect(lines).toContain('# TYPE gb_runs counter')
    expect(lines).toContain('# HELP gb_runs Runs that \\"ended\\"\\nso far')
    expect(lines).toContain('gb_seconds_bucket{driver="bwrap",le="1.0"} 3')
    expect(text.endsWith('# EOF\n')).toBe(true)
    for (const accept of ['*/*', 'text/plain', 'text/plain;q=1,application/openmetrics-text;q=0.5', 'application/openmetrics-text;q=0', ''])
      expect(expose([], accept).contentType).toMatch(/^text\/plain/)
  })

  test('have no more series than there is room for: the rest is told together', () => {
    const registry = new Registry()
    const counter = registry.counter({ name: 'gb_x', help: 'x', labels: ['a', 'b'], most: 10 })
    for (let n = 0; n < 1000; n += 1) counter.add({ a: `a${n}`, b: 'b' })
    const [family] = registry.read()
    expect(family?.samples).toHaveLength(10)
    const sum = family?.samples.reduce((all, sample) => all + ('value' in sample ? sample.value : 0), 0)
    expect(sum).toBe(1000)
    expect(family?.samples.at(-1)).toEqual({ labels: { a: 'other', b: 'other' }, value: 991 })
  })

  test('of one name are there once, and counters never go down', () => {
    const registry = new Registry()
    const counter = registry.counter({ name: 'gb_x', help: 'x' })
    expect(() => registry.gauge({ name: 'gb_x', help: 'y' })).toThrow('gb_x is taken')
    expect(() => registry.gauge({ name: '1x', help: 'y' })).toThrow('no name of a metric')
    counter.add({}, 2)
    counter.add({}, -1)
    expect(registry.read()[0]?.samples).toEqual([{ labels: {}, value: 2 }])
  })
})
