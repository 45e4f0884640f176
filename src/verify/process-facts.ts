import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import type { ProcessChoice, ThreadFacts } from '../conformance/index.js'

/*
 * What the kernel tells from outside of every thread of some processes. A process may end while it is looked at: what is gone is left out, and
 * what this user may not read stays empty, which no expectation takes for a good answer.
 */

export function lookAtProcesses(which: ProcessChoice): ThreadFacts[] {
  const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
  return pids.flatMap((pid) => (isMeant(pid, which) ? threadsOf(Number(pid)) : []))
}

function isMeant(pid: string, which: ProcessChoice): boolean {
  if ('marker' in which) return read(`/proc/${pid}/cmdline`).includes(which.marker)
  return link(`/proc/${pid}/ns/pid`) === which.pidNamespace
}

function threadsOf(pid: number): ThreadFacts[] {
  const base = `/proc/${pid}`
  const ofProcess = {
    pid,
    command: read(`${base}/cmdline`).replaceAll('\0', ' ').trim(),
    mounts: linesOf(`${base}/mountinfo`),
    limits: limitsOf(base),
    uidMap: read(`${base}/uid_map`).trim(),
    gidMap: read(`${base}/gid_map`).trim(),
    environment: read(`${base}/environ`).split('\0').filter(Boolean),
    oomScoreAdj: read(`${base}/oom_score_adj`).trim(),
  }
  return names(`${base}/task`).flatMap((tid) => {
    const own = `${base}/task/${tid}`
    const status = statusOf(own)
    if (status.Uid === undefined || status.State?.startsWith('Z')) return []
    return [
      {
        ...ofProcess,
        tid: Number(tid),
        status,
        namespaces: linksIn(`${own}/ns`),
        descriptors: linksIn(`${own}/fd`),
        cgroups: linesOf(`${own}/cgroup`),
      },
    ]
  })
}

function statusOf(base: string): Readonly<Record<string, string>> {
  return Object.fromEntries(linesOf(`${base}/status`).map((line) => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 1).trim()]))
}

function limitsOf(base: string): ThreadFacts['limits'] {
  const rows = linesOf(`${base}/limits`).slice(1)
  return Object.fromEntries(
    rows.map((row) => {
      const [name = '', soft = '', hard = ''] = row.split(/\s{2,}/)
      return [name, [soft, hard] as const]
    }),
  )
}

function linksIn(folder: string): Readonly<Record<string, string>> {
  return Object.fromEntries(names(folder).map((name) => [name, link(`${folder}/${name}`)]))
}

function linesOf(path: string): string[] {
  return read(path).split('\n').filter(Boolean)
}

function names(folder: string): string[] {
  try {
    return readdirSync(folder)
  } catch {
    return []
  }
}

function read(path: string): string {
  try {
    return readFileSync(path, 'latin1')
  } catch {
    return ''
  }
}

function link(path: string): string {
  try {
    return readlinkSync(path)
  } catch {
    return ''
  }
}
