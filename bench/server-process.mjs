/** The real server in a process of its own, with a key, and what it has of the machine: what the figures of the server are measured on. */
import { execFileSync, spawn } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, readlinkSync, rmSync } from 'node:fs'
import { Agent, request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const cli = fileURLToPath(new URL('../dist/cli/main.js', import.meta.url))

/** Ends it afterwards, whatever came of it. `inspected`: its heap can be looked at, by `server.inspector`. */
export async function withServer(act, options = {}) {
  const server = await startServer(options)
  try {
    return await act(server)
  } finally {
    await server.end()
  }
}

async function startServer({ inspected = false }) {
  const folder = mkdtempSync(join(tmpdir(), 'glovebox-bench-server-'))
  const env = { ...process.env, GLOVEBOX_SERVER_DIR: folder }
  const key = execFileSync(process.execPath, [cli, 'keys', 'create', '--scope', 'admin'], { env, encoding: 'utf8' }).trim().split('\n').at(-1)
  const argv = [...(inspected ? ['--inspect=127.0.0.1:0'] : []), cli, 'serve', '--listen', '127.0.0.1:0', '--grace', '5s', '--quiet']
  const child = spawn(process.execPath, argv, { env, stdio: ['ignore', 'ignore', 'pipe'] })
  const ended = new Promise((resolve) => child.once('exit', resolve))
  let said = ''
  const url = await new Promise((resolve, reject) => {
    child.stderr.on('data', (piece) => {
      // Of one that says much only the end is of interest.
      said = (said + piece).slice(-100_000)
      const [found] = /http:\/\/127\.0\.0\.1:\d+/.exec(said) ?? []
      if (found) resolve(found)
    })
    void ended.then((code) => reject(new Error(`the server ended with ${code}: ${said}`)))
  })
  const agent = new Agent({ keepAlive: true, maxSockets: 4096 })
  return {
    pid: child.pid,
    url,
    key,
    port: Number(new URL(url).port),
    inspector: /ws:\/\/127\.0\.0\.1:\S+/.exec(said)?.[0],
    /** What it has said that looks like a listener which nobody takes away. */
    warned: () => /MaxListenersExceededWarning[^\n]*/.exec(said)?.[0],
    /** Connections that wait for the next request are closed. */
    rest: () => agent.destroy(),
    ask: (path, options) => ask({ url, key, agent }, path, options),
    end: async () => {
      agent.destroy()
      child.kill('SIGTERM')
      await ended
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

/** One request; `leaveAfterMs` cuts the connection in the midst of it. */
function ask({ url, key, agent }, path, { method, body, accept = 'application/json', type = 'application/json', leaveAfterMs } = {}) {
  const bytes = body === undefined || typeof body === 'string' ? body : JSON.stringify(body)
  const headers = { authorization: `Bearer ${key}`, accept, ...(bytes !== undefined && { 'content-type': type, 'content-length': Buffer.byteLength(bytes) }) }
  return new Promise((resolve, reject) => {
    const sent = request(url + path, { method: method ?? (bytes === undefined ? 'GET' : 'POST'), headers, agent }, (response) => {
      let text = ''
      response.setEncoding('utf8')
      response.on('data', (piece) => (text += piece))
      response.on('end', () =>
        response.statusCode < 500 ? resolve({ status: response.statusCode, text }) : reject(new Error(`${path}: ${response.statusCode} ${text}`)),
      )
      response.on('error', reject)
    })
    sent.on('error', reject)
    sent.end(bytes)
    if (leaveAfterMs !== undefined) setTimeout(() => sent.destroy(new Left()), leaveAfterMs)
  })
}

export class Left extends Error {}

export function residentBytes(pid) {
  return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'latin1'))?.[1]) * 1024
}

/** What a process holds that it could forget to give back; `groups` are folders of cgroups, with processes in them or not. */
export function holdingsOf(pid) {
  const name = `${pid}.${readFileSync(`/proc/${pid}/stat`, 'latin1').split(') ')[1]?.split(' ')[19]}.`
  const descriptors = readdirSync(`/proc/${pid}/fd`).map((each) => linkOr(`/proc/${pid}/fd/${each}`))
  const listening = new Set(['tcp', 'tcp6', 'unix'].flatMap((kind) => listeningIn(kind, pid)))
  return {
    descriptors: descriptors.length,
    listeners: descriptors.filter((each) => listening.has(each)).length,
    groups: groupsBelow('/sys/fs/cgroup', name),
    name,
  }
}

/** Sockets that listen, as descriptors name them. */
function listeningIn(kind, pid) {
  const lines = readOr(`/proc/${pid}/net/${kind}`).trim().split('\n').slice(1)
  const fields = lines.map((line) => line.trim().split(/\s+/))
  return kind === 'unix'
    ? fields.filter(([, , , flags]) => flags === '00010000').map((each) => `socket:[${each[6]}]`)
    : fields.filter((each) => each[3] === '0A').map((each) => `socket:[${each[9]}]`)
}

/** Cells have folders with the name of the process that made them. */
export function groupsBelow(folder, name, depth = 8) {
  if (depth === 0) return 0
  const folders = foldersIn(folder)
  return folders.reduce((sum, each) => sum + (each.includes(name) ? 1 : 0) + groupsBelow(join(folder, each), name, depth - 1), 0)
}

function foldersIn(folder) {
  try {
    return readdirSync(folder, { withFileTypes: true })
      .filter((entry) => entry.isDirectory())
      .map((entry) => entry.name)
  } catch {
    // It went meanwhile.
    return []
  }
}

function linkOr(path) {
  try {
    return readlinkSync(path)
  } catch {
    // It was closed meanwhile.
    return ''
  }
}

function readOr(path) {
  try {
    return readFileSync(path, 'latin1')
  } catch {
    // There is none of this kind.
    return ''
  }
}
