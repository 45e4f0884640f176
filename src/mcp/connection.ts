import type { ServerContext } from '@modelcontextprotocol/server'
import type { Artifact } from '../contract/code.js'
import type { OwnSandbox } from './own-sandbox.js'
import type { Turns } from './turns.js'

/** What the tools of one connection share. */
export interface Connection {
  readonly sandbox: OwnSandbox
  readonly turns: Turns
  /** The latest files that executions made, by path; what a list of resources shows. */
  readonly artifacts: Map<string, Artifact>
  /** Where commands and code begin; the sandbox's own when not stated. */
  readonly cwd: string | undefined
  onArtifacts(): void
}

export type Context = ServerContext

const mostArtifacts = 1000

export function remember(connection: Connection, artifacts: readonly Artifact[]): void {
  if (artifacts.length === 0) return
  for (const artifact of artifacts) {
    connection.artifacts.delete(artifact.path)
    connection.artifacts.set(artifact.path, artifact)
  }
  for (const path of connection.artifacts.keys()) {
    if (connection.artifacts.size <= mostArtifacts) break
    connection.artifacts.delete(path)
  }
  connection.onArtifacts()
}
