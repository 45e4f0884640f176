import type { CodeRequest } from '../../src/contract/code.js'
import type { Platform } from '../../src/contract/platform.js'
import type { Executed } from '../runtimes/python/kernel.js'

export interface CellExecution extends Omit<CodeRequest, 'input'> {
  /** Answers to questions, one after the other; null is the end of input. */
  readonly answers?: readonly (string | null)[] | undefined
}

/** Executes code in a cell, and tells it as the harness over pipes does. */
export async function executeInCell(platform: Platform, id: string, { answers: given, ...request }: CellExecution): Promise<Executed> {
  const answers = [...(given ?? [])]
  const execution = await platform.code.execute(id, { ...request, input: given !== undefined })
  const texts = { stdout: '', stderr: '' }
  const results: Executed['results'][number][] = []
  const order: string[] = []
  for await (const event of execution.events) {
    if (event.type === 'ask') {
      order.push(`${event.isSecret ? 'secret' : 'ask'} ${event.prompt}`)
      await execution.answer(answers.shift() ?? null)
    } else if (event.type === 'result') {
      results.push(event.result)
      order.push('result')
    } else {
      const text = Buffer.from(event.bytes).toString()
      texts[event.type] += text
      if (order.at(-1)?.startsWith(`${event.type} `)) order[order.length - 1] += text
      else order.push(`${event.type} ${text}`)
    }
  }
  const { status, number, code, error } = await execution.ended
  const told = error && { ...error, full: error.fullTraceback }
  return { status: status as Executed['status'], number, ...(code !== undefined && { code }), ...(told && { error: told }), ...texts, results, order }
}
