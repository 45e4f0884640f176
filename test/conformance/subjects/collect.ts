import type { SubjectProcess, SubjectResult } from '../../../src/conformance/index.js'

/** Feeds a started program all of its input, keeps all of its output and waits for its end. */
export async function collect(process: SubjectProcess, stdin: Uint8Array | undefined): Promise<SubjectResult> {
  const kept = { stdout: [] as Uint8Array[], stderr: [] as Uint8Array[] }
  const feeding = feed(process, stdin)
  for await (const { type, bytes } of process.output) kept[type].push(Uint8Array.from(bytes))
  const { outcome, usage, truncated } = await process.ended
  await feeding
  return { outcome, usage, truncated, stdout: Buffer.concat(kept.stdout), stderr: Buffer.concat(kept.stderr) }
}

async function feed(process: SubjectProcess, stdin: Uint8Array | undefined): Promise<void> {
  if (stdin === undefined) return
  try {
    await process.write(stdin)
    await process.endInput()
  } catch {
    // A channel that ended is told by the run's own ending.
  }
}
