import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import type { CgroupTree } from '../../src/sys/cgroup-files.js'

/** Version 2 in a folder of its own: files appear by what the parent hands down, and the rules about processes and writers hold. */

const filesOf: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  memory: {
    'memory.max': 'max',
    'memory.high': 'max',
    'memory.swap.max': 'max',
    'memory.current': '0',
    'memory.peak': '0',
    'memory.events': 'low 0\noom 0\noom_kill 0',
    'memory.events.local': 'low 0\noom 0\noom_kill 0',
  },
  cpu: { 'cpu.max': 'max 100000' },
  io: { 'io.max': '' },
  pids: { 'pids.max': 'max', 'pids.current': '0', 'pids.peak': '0', 'pids.events': 'max 0', 'pids.events.local': 'max 0' },
}

function refuse(code: string): never {
  throw Object.assign(new Error(code), { code })
}

export interface ModelOptions {
  readonly root: string
  /** Folders that this user may write in, with all that is below. */
  readonly delegated: string
}

export function createCgroupModel({ root, delegated }: ModelOptions) {
  const isOurs = (path: string): boolean => path === delegated || path.startsWith(`${delegated}/`)
  /** Files that another user may write by now. */
  const given = new Map<string, number>()
  const text = (file: string): string => (existsSync(file) ? readFileSync(file, 'utf8') : '')
  const words = (file: string): string[] => text(file).split(/\s+/).filter(Boolean)

  const populate = (folder: string): void => {
    const handed = folder === root ? ['cpuset', 'cpu', 'io', 'memory', 'pids'] : words(join(dirname(folder), 'cgroup.subtree_control'))
    mkdirSync(folder, { recursive: true })
    writeFileSync(join(folder, 'cgroup.controllers'), handed.join(' '))
    for (const name of ['cgroup.procs', 'cgroup.subtree_control', 'cgroup.kill']) writeFileSync(join(folder, name), '')
    // The root itself can be frozen in no kernel.
    if (folder !== root) writeFileSync(join(folder, 'cgroup.freeze'), '0')
    writeFileSync(join(folder, 'cgroup.events'), 'populated 0\nfrozen 0')
    writeFileSync(join(folder, 'cpu.stat'), 'usage_usec 0\nuser_usec 0')
    for (const name of handed) for (const [file, value] of Object.entries(filesOf[name] ?? {})) writeFileSync(join(folder, file), value)
  }

  const handDown = (folder: string, value: string): void => {
    for (const name of value.split(' ').map((word) => word.slice(1))) {
      if (!words(join(folder, 'cgroup.controllers')).includes(name)) refuse('ENOENT')
      if (folder !== root && text(join(folder, 'cgroup.procs')) !== '') refuse('EBUSY')
      writeFileSync(join(folder, 'cgroup.subtree_control'), [...words(join(folder, 'cgroup.subtree_control')), name].join(' '))
      // What is there already gets the files of what it is given.
      for (const below of tree.list(folder)) {
        writeFileSync(join(folder, below, 'cgroup.controllers'), text(join(folder, 'cgroup.subtree_control')))
        for (const [file, start] of Object.entries(filesOf[name] ?? {})) writeFileSync(join(folder, below, file), start)
      }
    }
  }

  /** One line a device; what a write does not name stays, and a line that limits nothing goes. */
  const throttle = (file: string, value: string): void => {
    const [device = '', ...settings] = value.split(' ')
    const lines = text(file).split('\n').filter(Boolean)
    const old = lines.find((line) => line.startsWith(`${device} `)) ?? `${device} rbps=max wbps=max riops=max wiops=max`
    const merged = settings.reduce((line, setting) => line.replace(new RegExp(`${setting.split('=')[0]}=\\S+`), setting), old)
    const rest = lines.filter((line) => !line.startsWith(`${device} `))
    writeFileSync(file, [...rest, ...(/=\d/.test(merged) ? [merged] : [])].join('\n'))
  }

  const killBelow = (folder: string): void => {
    writeFileSync(join(folder, 'cgroup.procs'), '')
    for (const name of tree.list(folder)) killBelow(join(folder, name))
  }

  const move = (file: string, pid: string): void => {
    if (text(join(dirname(file), 'cgroup.subtree_control')) !== '') refuse('EBUSY')
    for (const other of readdirSync(root, { recursive: true, encoding: 'utf8' }).filter((name) => basename(name) === 'cgroup.procs')) {
      writeFileSync(
        join(root, other),
        words(join(root, other))
          .filter((member) => member !== pid)
          .join('\n'),
      )
    }
    writeFileSync(file, [...words(file), pid].join('\n'))
  }

  const tree: CgroupTree = {
    read: (file) => (existsSync(file) ? text(file).trim() : undefined),
    hold: (file) => (existsSync(file) ? { read: () => (existsSync(file) ? text(file).trim() : undefined), close: () => undefined } : undefined),
    holdToWrite: (file) => ({ write: (value) => tree.write(file, value), close: () => undefined }),
    has: existsSync,
    isWritable: (file) => existsSync(file) && isOurs(dirname(file)),
    write(file, value) {
      if (!existsSync(file)) refuse('ENOENT')
      if (!isOurs(dirname(file))) refuse('EACCES')
      if (basename(file) === 'cgroup.subtree_control') handDown(dirname(file), value)
      else if (basename(file) === 'cgroup.procs') move(file, value)
      else if (basename(file) === 'cgroup.kill') killBelow(dirname(file))
      else if (basename(file) === 'io.max') throttle(file, value)
      else writeFileSync(file, value)
      if (basename(file) === 'cgroup.freeze') writeFileSync(join(dirname(file), 'cgroup.events'), `populated 1\nfrozen ${value}`)
    },
    make(folder) {
      if (!isOurs(dirname(folder))) refuse('EACCES')
      if (existsSync(folder)) refuse('EEXIST')
      populate(folder)
    },
    remove(folder) {
      if (!existsSync(folder)) refuse('ENOENT')
      if (text(join(folder, 'cgroup.procs')) !== '' || tree.list(folder).length > 0) refuse('EBUSY')
      rmSync(folder, { recursive: true })
    },
    give(file, uid) {
      given.set(file, uid)
    },
    isOwn: (folder) => isOurs(dirname(folder)),
    list(folder) {
      if (!existsSync(folder)) return []
      return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => (entry.isDirectory() ? [entry.name] : []))
    },
  }
  return { tree, populate, given }
}
