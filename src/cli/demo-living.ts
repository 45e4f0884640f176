import { basename } from 'node:path'
import type { Change } from '../contract/snapshots.js'
import { type CreateOptions, Sandbox } from '../sandbox/index.js'
import type { Verdict } from './demo-steps.js'

/** Reads questions until there are no more; what it answers is printed, and kept in a file. */
const answering = 'while read -r number; do expr "$(cat factor)" "*" "$number"; done | tee answers'

/**
 * A sandbox that is more than one run: a file is put in, a process is started and left, somebody else comes back to it by its tag, asks, and hears the
 * answer; then the sandbox tells what was written in it.
 */
export async function liveInOne(options: CreateOptions): Promise<Verdict> {
  await using sandbox = await Sandbox.create(options)
  await sandbox.files.write('factor', '6\n')
  await sandbox.spawn(answering, { tag: 'oracle' })
  const view = await sandbox.attach('oracle', { replay: true })
  await view.stdin.end('7\n')
  const answer = (await new Response(view.stdout).text()).trim()
  await view.wait()
  const changes = (await sandbox.diff()).map(describe)
  const ok = answer === '42' && changes.join() === '+answers,+factor'
  return { ok, seen: `process said ${answer === '' ? 'nothing' : answer}; diff ${changes.join(' ') || 'empty'}` }
}

const marks = { added: '+', changed: '~', removed: '-' } as const

function describe({ type, path }: Change): string {
  return `${marks[type]}${basename(path)}`
}
