import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { insideOf, parseIdMap } from '../../../src/sys/posture/id-map.js'
import { parseLimits } from '../../../src/sys/posture/process-limits.js'
import { parseStatus } from '../../../src/sys/posture/process-status.js'

const status = `Name:	a: b (c)
State:	S (sleeping)
Tgid:	18496
Pid:	18496
PPid:	18495
TracerPid:	0
Uid:	2013266920	2013266920	2013266920	2013266920
Gid:	2013266920	2013266920	2013266921	2013266920
FDSize:	64
Groups:	4 27 1000 
NStgid:	18496	3
NSpid:	18496	3
Threads:	1
CapInh:	0000000000000000
CapPrm:	00000000000005fb
CapEff:	0000000000000100
CapBnd:	000001ffffffffff
CapAmb:	0000000000000000
NoNewPrivs:	1
Seccomp:	2
Seccomp_filters:	12
Speculation_Store_Bypass:	vulnerable
`

describe('a status', () => {
  test('tells ids, groups, capabilities and filters', () => {
    expect(parseStatus(status)).toEqual({
      state: 'S',
      uids: [2013266920, 2013266920, 2013266920, 2013266920],
      gids: [2013266920, 2013266920, 2013266921, 2013266920],
      groups: [4, 27, 1000],
      pids: [18496, 3],
      processes: [18496, 3],
      capabilities: { effective: '100', permitted: '5fb', inheritable: '0', bounding: '1ffffffffff', ambient: '0' },
      noNewPrivs: true,
      seccomp: 2,
      filters: 12,
    })
  })

  test('without groups has none, and without a count of filters does not guess one', () => {
    const other = status
      .replace('4 27 1000 ', ' ')
      .replace(/Seccomp_filters.*\n/, '')
      .replace('NoNewPrivs:\t1', 'NoNewPrivs:\t0')
    expect(parseStatus(other)).toMatchObject({ groups: [], filters: null, noNewPrivs: false })
  })

  test.each(['Uid', 'CapBnd', 'CapAmb', 'NoNewPrivs', 'Seccomp', 'NSpid', 'NStgid'])('that does not say its %s is no status', (field) => {
    expect(() => parseStatus(status.replace(new RegExp(`^${field}:.*\n`, 'm'), ''))).toThrow(`the kernel tells no ${field} of a process`)
  })

  test('cannot be forged by the name of a program', () => {
    // The kernel escapes line breaks in names.
    expect(parseStatus(status.replace('a: b (c)', 'x\\nSeccomp:\t0\\nNoNewPrivs:\t0')).seccomp).toBe(2)
  })

  test('of this very process is understood', () => {
    expect(parseStatus(readFileSync('/proc/self/status', 'utf8'))).toMatchObject({ state: 'R', uids: [0, 1, 2, 3].map(() => process.getuid?.()) })
  })
})

test('limits are told by name, soft and hard', () => {
  const text = `Limit                     Soft Limit           Hard Limit           Units     
Max cpu time              unlimited            unlimited            seconds   
Max file size             104857600            104857600            bytes     
Max core file size        0                    unlimited            bytes     
Max processes             64                   96343                processes 
Max open files            20000                20000                files     
Max nice priority         0                    0                    
Max realtime timeout      unlimited            unlimited            us        
Max something new         1                    2                    things    
`
  expect(parseLimits(text)).toEqual({
    cpu: ['unlimited', 'unlimited'],
    fileSize: [104857600, 104857600],
    core: [0, 'unlimited'],
    processes: [64, 96343],
    files: [20000, 20000],
    nice: [0, 0],
    realtimeTimeout: ['unlimited', 'unlimited'],
  })
  expect(Object.keys(parseLimits(readFileSync('/proc/self/limits', 'utf8')))).toHaveLength(16)
})

describe('an id map', () => {
  const map = parseIdMap('         0 2013265920      65536\n    100000       1000          1\n')

  test('has a row for each range', () => {
    expect(map).toEqual([
      [0, 2013265920, 65536],
      [100000, 1000, 1],
    ])
    expect(parseIdMap('')).toEqual([])
  })

  test('tells what an id of the host is called inside, if anything', () => {
    expect([2013265920, 2013266920, 2013331455, 2013331456, 1000, 1001, 0].map((id) => insideOf(id, map))).toEqual([
      0,
      1000,
      65535,
      undefined,
      100000,
      undefined,
      undefined,
    ])
  })
})
