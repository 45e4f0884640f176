import { ensure, ensureExited, ensureSame } from '../check.js'
import type { Subject, SubjectSandbox, ThreadFacts } from '../subject.js'
import { type ContainmentCase, places as allPlaces, type Place } from './containment.js'
import { type Dwelling, withDwelling } from './posture-look.js'

const needs = ['isolates', 'shared-kernel'] as const

/** CHOWN, DAC_OVERRIDE, FOWNER, FSETID and NET_BIND_SERVICE, which SECURITY.md grants to in-cell root. */
const rootMask = 0b100_0001_1011n

interface Look {
  readonly id: string
  readonly name: string
  readonly threats: string
  readonly tries: string
  readonly means: string
  readonly places?: readonly Place[]
  readonly needs?: ContainmentCase['needs']
  /** Holds without walls, too. */
  readonly isUsual?: true
  /** Of one thread: what is wrong with it, or undefined. */
  readonly judge: (facts: ThreadFacts, subject: Subject) => string | undefined
}

function masks({ status }: ThreadFacts, ...sets: readonly string[]): bigint {
  return sets.reduce((all, set) => all | BigInt(`0x${status[set] ?? 'ffffffff'}`), 0n)
}

function isRoots({ status, uidMap }: ThreadFacts): boolean {
  const [, outside] = /^\s*0\s+(\d+)/m.exec(uidMap) ?? []
  return outside !== undefined && status.Uid?.split(/\s+/)[0] === outside
}

const looks: readonly Look[] = [
  {
    id: 'capabilities',
    name: 'every thread has the documented capabilities and no other, in any set',
    threats: 'X-01 K-22',
    tries: "Reads the five sets of each thread from the host's /proc.",
    means: 'Programs have rights that were meant to be gone.',
    judge: (facts) => {
      const allowed = isRoots(facts) ? rootMask : 0n
      const [held, passed] = [masks(facts, 'CapEff', 'CapPrm', 'CapBnd'), masks(facts, 'CapInh', 'CapAmb')]
      return (held & ~allowed) === 0n && passed === 0n
        ? undefined
        : `CapEff ${String(facts.status.CapEff)} CapPrm ${String(facts.status.CapPrm)} CapBnd ${String(facts.status.CapBnd)} CapInh ${String(facts.status.CapInh)}`
    },
  },
  {
    id: 'no-new-privileges',
    name: 'every thread has no_new_privs',
    threats: 'X-01 K-22',
    tries: 'Reads NoNewPrivs of each thread.',
    means: 'A set-user-id program makes root of whoever executes it.',
    judge: ({ status }) => (status.NoNewPrivs === '1' ? undefined : `NoNewPrivs ${String(status.NoNewPrivs)}`),
  },
  {
    id: 'filter',
    name: 'every thread runs under a filter of system calls, of its own beside that of the warden',
    threats: 'X-01 K-25',
    tries: 'Reads the seccomp mode and the number of filters of each thread.',
    means: 'All of the kernel is open to programs.',
    needs: ['filters-syscalls'],
    judge: ({ status }) =>
      status.Seccomp === '2' && Number(status.Seccomp_filters ?? '2') >= 2
        ? undefined
        : `Seccomp ${String(status.Seccomp)}, ${String(status.Seccomp_filters)} filters`,
  },
  {
    id: 'namespaces',
    name: "no thread is in a namespace of the host's",
    threats: 'X-01 K-29',
    tries: "Compares the seven namespaces of each thread with the host's.",
    means: 'What that namespace separates is not separated.',
    judge: ({ namespaces }, { host }) => {
      const same = Object.entries(host.namespaces).filter(([kind, name]) => (namespaces[kind] ?? '') === '' || namespaces[kind] === name)
      return same.length === 0 ? undefined : same.map(([kind]) => `${kind}: ${namespaces[kind] ?? 'cannot be read'}`).join(', ')
    },
  },
  {
    id: 'ids',
    name: "no thread has root's id on the host, nor further groups of anybody's",
    threats: 'X-01 M-05',
    tries: 'Reads the ids and groups of each thread as the host counts them.',
    means: 'Whoever escapes is root, or in a group that may do what root may.',
    judge: ({ status }) => {
      const ids = [...(status.Uid ?? '0').split(/\s+/), ...(status.Gid ?? '0').split(/\s+/)]
      return ids.includes('0') || new Set(status.Uid?.split(/\s+/)).size !== 1 ? `Uid ${String(status.Uid)} Gid ${String(status.Gid)}` : undefined
    },
  },
  {
    id: 'id-maps',
    name: "root of the host is in no thread's map of ids",
    threats: 'X-01 M-05',
    tries: 'Reads uid_map and gid_map of each program.',
    means: 'In-cell root can become root of the host.',
    judge: ({ uidMap, gidMap }) => {
      const outside = [uidMap, gidMap].flatMap((map) => map.split('\n').map((line) => line.trim().split(/\s+/)[1]))
      return outside.includes('0') || outside.includes(undefined) ? `uid_map ${uidMap}, gid_map ${gidMap}` : undefined
    },
  },
  {
    id: 'descriptors',
    name: 'every thread has the descriptors 0, 1 and 2, each a pipe or nothing, and no other',
    threats: 'X-01 F-20',
    tries: 'Reads where the descriptors of each thread lead.',
    means: 'A descriptor of the host was left open: a way to its files or to its control.',
    judge: ({ descriptors }) => {
      const strange = Object.entries(descriptors).filter(([number, target]) => Number(number) > 2 || !/^(pipe:|socket:|\/dev\/null|\/dev\/pts\/)/.test(target))
      return strange.length === 0 && Object.keys(descriptors).length > 0 ? undefined : JSON.stringify(descriptors)
    },
  },
  {
    id: 'mounts',
    name: 'what is mounted writable is without set-user-id and devices, and is of memory or a mount of its own',
    threats: 'X-01 F-07',
    tries: 'Reads the mount table of each program from outside.',
    means: 'A folder of the host can be written to.',
    judge: ({ mounts }) => {
      const bad = mounts
        .map((line) => line.split(' '))
        .filter(([, , , , point = '', options = '']) => {
          const set = options.split(',')
          return set.includes('rw') && !point.startsWith('/dev') && !point.startsWith('/proc') && (!set.includes('nosuid') || !set.includes('nodev'))
        })
      return mounts.length > 0 && bad.length === 0 ? undefined : bad.map((fields) => fields.slice(3).join(' ')).join('; ') || 'no table could be read'
    },
  },
  {
    id: 'root-read-only',
    name: 'the root of every program is mounted read-only',
    threats: 'X-01 F-07',
    tries: 'Reads how the root of each program is mounted.',
    means: 'Files that all programs of the cell execute can be replaced.',
    judge: ({ mounts }) => {
      const roots = mounts.map((line) => line.split(' ')).filter(([, , , , point]) => point === '/')
      return roots.length > 0 && roots.at(-1)?.[5]?.split(',').includes('ro') === true ? undefined : JSON.stringify(roots.map((fields) => fields.slice(3, 6)))
    },
  },
  {
    id: 'limits',
    name: 'every program has hard limits of files and none of core dumps',
    threats: 'X-01 P-43',
    tries: 'Reads the limits of each program.',
    means: 'One program can use up what the machine has, or write its memory to a disk.',
    judge: ({ limits }) => {
      const [core, files] = [limits['Max core file size'], limits['Max open files']]
      return core?.[1] === '0' && files !== undefined && Number(files[1]) <= 1_048_576 ? undefined : JSON.stringify({ core, files })
    },
  },
  {
    id: 'environment',
    name: "no variable of the engine's is in any program's environment",
    threats: 'X-01 P-31',
    tries: 'Reads the environment of each program from outside, and looks for the planted variable and for what steers loaders.',
    means: "Secrets in the engine's environment can be read.",
    judge: ({ environment }, { host }) => {
      const { name, value } = host.canaries.variable
      const bad = environment.filter((line) => line.includes(name) || line.includes(value) || /^(LD_|NODE_|SSH_|npm_|GLOVEBOX)/.test(line))
      return environment.length > 0 && bad.length === 0 ? undefined : bad.join(' ') || 'it could not be read'
    },
  },
  {
    id: 'groups-of-control',
    name: 'every thread is in cgroups of its sandbox, where limits are held by these',
    threats: 'X-01 P-40',
    tries: 'Reads the cgroups of each thread.',
    means: 'What is counted and limited is not the program.',
    needs: ['limit:memory', 'limit:processes'],
    judge: ({ cgroups }) =>
      cgroups.some((line) => /:(memory|pids|):.*\/glovebox\./.test(line) || /^0::.*\/glovebox\./.test(line)) ? undefined : cgroups.join(' '),
  },
  {
    id: 'victims',
    isUsual: true,
    name: 'the kernel ends programs of a cell rather than those of the host when memory is short',
    threats: 'X-01 P-14',
    tries: 'Reads oom_score_adj of each program.',
    means: 'A program of the host is ended in its place.',
    judge: ({ oomScoreAdj }) => (Number(oomScoreAdj) >= 0 && oomScoreAdj !== '' ? undefined : `oom_score_adj ${oomScoreAdj}`),
  },
  {
    id: 'nobody-traces',
    isUsual: true,
    name: 'nobody traces a program of a cell, and its secrets of speculation are guarded as the kernel offers',
    threats: 'X-01 K-11',
    tries: 'Reads TracerPid of each thread.',
    means: 'Something holds on to the program and can change it.',
    judge: ({ status }) => (status.TracerPid === '0' ? undefined : `TracerPid ${String(status.TracerPid)}`),
  },
]

function judgeAll(facts: readonly ThreadFacts[], subject: Subject, judge: Look['judge']): string {
  const wrong = facts.flatMap((each) => {
    const said = judge(each, subject)
    return said === undefined ? [] : [`thread ${each.tid}: ${said}`]
  })
  ensureSame(wrong, [], 'what is wrong with a thread')
  return `${facts.length} threads of ${new Set(facts.map(({ pid }) => pid)).size} processes`
}

function lookCase(look: Look): ContainmentCase {
  return {
    id: `posture/${look.id}`,
    name: look.name,
    group: 'posture',
    threats: look.threats.split(' '),
    tries: look.tries,
    means: look.means,
    needs: [...needs, ...(look.needs ?? [])],
    ...(!look.isUsual && { denial: true as const }),
    shares: true,
    places: look.places ?? allPlaces,
    run: (subject) => withDwelling(subject, ({ facts }) => Promise.resolve(judgeAll(facts, subject, look.judge))),
  }
}

/** What does not change by itself. */
function comparable(facts: readonly ThreadFacts[]): unknown {
  const names = ['Uid', 'Gid', 'Groups', 'CapInh', 'CapPrm', 'CapEff', 'CapBnd', 'CapAmb', 'NoNewPrivs', 'Seccomp', 'TracerPid']
  return facts.map(({ status, namespaces, mounts, limits, uidMap, environment }) => ({
    status: names.map((name) => status[name]),
    namespaces: Object.entries(namespaces).filter(([kind]) => !kind.endsWith('_for_children')),
    mounts: mounts.length,
    limits,
    uidMap,
    environment: environment.length,
  }))
}

function judgeEvery({ facts }: Pick<Dwelling, 'facts'>, subject: Subject): string {
  const applicable = looks.filter(({ needs: own = [] }) => own.length === 0 || subject.probe.limits.memory.enforced)
  return applicable.map(({ judge }) => judgeAll(facts, subject, judge)).at(-1) ?? ''
}

async function runHundred(sandbox: SubjectSandbox): Promise<void> {
  for (let n = 0; n < 10; n += 1) for (const result of await Promise.all(Array.from({ length: 10 }, () => sandbox.run(['true'])))) ensureExited(result)
}

const later: readonly ContainmentCase[] = [
  {
    id: 'posture/after-a-hundred-runs',
    name: 'the posture of a program is the same after a hundred runs before it',
    group: 'posture',
    threats: ['X-02'],
    tries: 'Runs a hundred programs in a sandbox and looks at one more.',
    means: 'Later programs are not held as the first is.',
    needs,
    denial: true,
    places: ['user'],
    run: (subject) => withDwelling(subject, (dwelling) => Promise.resolve(judgeEvery(dwelling, subject)), runHundred),
  },
  {
    id: 'posture/after-a-pause',
    name: 'the posture of a program is the same after a pause',
    group: 'posture',
    threats: ['X-02'],
    tries: 'Looks at a program, pauses its sandbox, lets it go on, and looks again.',
    means: 'A pause takes something away from what holds a program.',
    needs: [...needs, 'feature:pause'],
    places: ['user'],
    run: (subject) =>
      withDwelling(subject, async ({ facts, sandbox, look }) => {
        await sandbox.pause()
        await sandbox.resume()
        const after = await look()
        ensureSame(comparable(after), comparable(facts), 'what is told of the threads afterwards')
        return judgeEvery({ facts: after }, subject)
      }),
  },
  {
    id: 'posture/warden',
    name: 'the first process of the cell is filtered, gains nothing, and is not root of the host',
    group: 'posture',
    threats: ['X-01'],
    tries: "Looks at the first process of the program's process namespace from outside.",
    means: 'The program that starts guests has more rights than it needs.',
    needs,
    places: ['user'],
    run: (subject) =>
      withDwelling(subject, async ({ facts }) => {
        const pidNamespace = facts[0]?.namespaces.pid ?? ''
        const first = (await subject.host.look({ pidNamespace })).filter(({ status }) => status.NSpid?.split(/\s+/).at(-1) === '1')
        // Whoever is not root may not see the namespaces of a process that lets nobody look at it.
        const seen = first.map(({ status }) => ({ noNewPrivs: status.NoNewPrivs, seccomp: status.Seccomp, isRoot: status.Uid?.split(/\s+/).includes('0') }))
        ensure(
          seen.every(({ noNewPrivs, seccomp, isRoot }) => noNewPrivs === '1' && seccomp === '2' && isRoot === false),
          'the first process must be filtered and have an id of its own',
          seen,
        )
        return seen.length === 0 ? 'it lets nobody look at it' : JSON.stringify(seen)
      }),
  },
]

export const postureContainment: readonly ContainmentCase[] = [...looks.map(lookCase), ...later]
