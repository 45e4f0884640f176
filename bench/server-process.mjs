/** The real server in a process of its own, with a key, and what it has of the machine: what the figures of the server are measured on. */
import { execFileSync, spawn } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { Agent, request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const cli = fileURLToPath(new URL('../dist/cli/main.js', import.meta.url))

/** Ends it afterwards, whatever came of it. */
export async function withServer(act) {
  const server = await startServer()
  try {
    return await act(server)
  } finally {
    await server.end()
  }
}

async function startServer() {
  const folder = mkdtempSync(join(tmpdir(), 'glovebox-bench-server-'))
  const env = { ...process.env, GLOVEBOX_SERVER_DIR: folder }
  const key = execFileSync(process.execPath, [cli, 'keys', 'create', '--scope', 'admin'], { env, encoding: 'utf8' }).trim().split('\n').at(-1)
  const child = spawn(process.execPath, [cli, 'serve', '--listen', '127.0.0.1:0', '--grace', '5s', '--quiet'], { env, stdio: ['ignore', 'ignore', 'pipe'] })
  const ended = new Promise((resolve) => child.once('exit', resolve))
  const url = await new Promise((resolve, reject) => {
    let said = ''
    child.stderr.on('data', (piece) => {
      said += piece
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

/** What a process holds that it could forget to give back. */
export function holdingsOf(pid) {
  const name = readFileSync(`/proc/${pid}/stat`, 'latin1').split(') ')[1]?.split(' ')[19]
  const cgroups = new Set()
  for (const other of readdirSync('/proc').filter((each) => /^\d+$/.test(each))) {
    const group = readOr(`/proc/${other}/cgroup`)
    if (group.includes(`${pid}.${name}.`)) cgroups.add(group)
  }
  return {
    rssBytes: Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'latin1'))?.[1]) * 1024,
    descriptors: readdirSync(`/proc/${pid}/fd`).length,
    cgroups: cgroups.size,
  }
}

function readOr(path) {
  try {
    return readFileSync(path, 'latin1')
  } catch {
    // It ended meanwhile.
    return ''
  }
}
