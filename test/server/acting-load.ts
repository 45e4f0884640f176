import type { AuditAct } from '../../src/contract/audit.js'
import type { Answer } from './own-server.js'
import type { StartedServer } from './started-server.js'

/** What a server said was done: which act, under which request. */
export interface Acknowledged {
  readonly act: AuditAct
  readonly request: string
  readonly sandbox?: string
}

interface LoadOptions {
  readonly clients: number
  readonly random: () => number
  /** Stands in the command line of all that is left to run. */
  readonly marker: string
}

/** Callers that never rest, each with acts of all kinds, until the server is gone. What it answered is written down; an answer that is a failure of its own is too. */
export class ActingLoad {
  readonly acknowledged: Acknowledged[] = []
  readonly failures: string[] = []
  readonly over: Promise<unknown>
  readonly #options: LoadOptions
  readonly #server: StartedServer
  #isOver = false

  constructor(server: StartedServer, options: LoadOptions) {
    this.#server = server
    this.#options = options
    this.over = Promise.all(Array.from({ length: options.clients }, () => this.#client()))
  }

  /** What is under way is waited for. */
  async stop(): Promise<void> {
    this.#isOver = true
    await this.over
  }

  async #client(): Promise<void> {
    while (!this.#isOver) {
      try {
        await (this.#options.random() < 0.5 ? this.#shoot() : this.#live())
      } catch (error) {
        // It was killed, and what it was asked is unanswered.
        if (!isLeft(error)) throw error
        return
      }
    }
  }

  /** Every fourth is still there when the server ends. */
  async #shoot(): Promise<void> {
    const isLong = this.#options.random() < 0.25
    const command = isLong ? ['sh', '-c', `sleep 1000.${this.#options.marker}`] : ['sh', '-c', 'echo shot']
    await this.#act('run.start', '/v1/runs', { body: { command, ...(isLong && { timeout: '1s' }) } })
  }

  async #live(): Promise<void> {
    const { random, marker } = this.#options
    const made = await this.#act('sandbox.create', '/v1/sandboxes', { body: { agent: 'load' } })
    if (made === undefined) return
    const { id } = made.json() as { id: string }
    const one = `/v1/sandboxes/${id}`
    const bytes = { 'content-type': 'application/octet-stream' }
    await this.#act('file.write', `${one}/files/content?path=a.txt`, { method: 'PUT', body: 'a'.repeat(10_000), headers: bytes }, id)
    const stays = { command: ['sh', '-c', `(setsid sleep 1000.${marker} &) ; sleep 1000.${marker}`], background: true }
    await this.#act('run.start', `${one}/processes`, { body: random() < 0.5 ? stays : { command: ['cat', 'a.txt'] } }, id)
    if (random() < 0.3) await this.#act('snapshot.take', `${one}/snapshots`, { body: {} }, id)
    if (random() < 0.2) await this.#act('key.create', '/v1/keys', { body: { tenant: 'default', scopes: ['read'] } })
    if (random() < 0.7) await this.#act('sandbox.close', one, { method: 'DELETE' }, id)
  }

  async #act(act: AuditAct, path: string, asking: Parameters<StartedServer['ask']>[1], sandbox?: string): Promise<Answer | undefined> {
    const answer = await this.#server.ask(path, asking)
    if (answer.status < 300) {
      const made = act === 'sandbox.create' ? (answer.json().id as string) : sandbox
      this.acknowledged.push({ act, request: String(answer.headers['glovebox-request']), ...(made !== undefined && { sandbox: made }) })
      return answer
    }
    this.failures.push(`${answer.status} ${path} ${answer.text}`)
    return undefined
  }
}

function isLeft(error: unknown): boolean {
  return ['ECONNRESET', 'ECONNREFUSED', 'EPIPE', 'ENOENT', 'ECONNABORTED'].includes((error as NodeJS.ErrnoException).code ?? '')
}
