import { SandboxError } from '../contract/errors.js'
import { type CreateOptions, type Execution, Sandbox } from '../sandbox/index.js'
import type { DemoStage } from './demo-stage.js'
import type { Verdict } from './demo-steps.js'

/** Code in a context: what one execution knows the next one knows, and what the host has neither gets; `missing` where there is no interpreter. */
export async function codeInOne(
  options: CreateOptions,
  { secret, secretPath }: Pick<DemoStage, 'secret' | 'secretPath'>,
): Promise<Verdict | { missing: string }> {
  await using sandbox = await Sandbox.create(options)
  try {
    await sandbox.code('answer = 6 * 7')
    const kept = await sandbox.code('answer')
    const refused = await sandbox.code('import os\nopen(os.environ["SECRET"]).read()', { env: { SECRET: secretPath } })
    const isRead = refused.text?.includes(secret) === true
    const ok = kept.text === '42' && refused.status === 'error' && !isRead
    return { ok, seen: `kept ${kept.text ?? 'nothing'}; ${isRead ? 'the file was read' : reasonOf(refused)}` }
  } catch (error) {
    if (!(error instanceof SandboxError) || error.code !== 'unsupported') throw error
    return { missing: error.message }
  }
}

/** "[Errno 2] No such file or directory: '/tmp/x'" → 'refused: No such file or directory'. */
function reasonOf({ error, status }: Execution): string {
  const [reason = ''] = (error?.value ?? '').replace(/^\[Errno \d+\] /, '').split(': ')
  return error ? `refused: ${reason}` : `it ended as ${status}`
}
