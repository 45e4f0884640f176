import type { ServerView } from '../conformance/index.js'

export function serveForVerify(_folder: string): Promise<ServerView & AsyncDisposable> {
  return Promise.reject(new Error('not yet'))
}
