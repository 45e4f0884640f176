import * as z from 'zod'
import { networkApprovals } from '../network.js'
import { freshKinds } from '../pools.js'
import { receiptSchema } from '../receipt.js'
import { runRequestSchema, terminalSizeSchema } from '../run.js'
import { specSchema, idSchema } from '../spec.js'
import { userNames } from '../spec-words.js'
import { errorEvent, flagSchema, outputEvent, pageOf, pageQuery, type Shape, timeSchema } from './pieces.js'
import { endingReply, networkFacts, networkRecord, networkSummary } from './pieces-of-runs.js'
import { infoReply } from './sandboxes.js'

const processReply = z.strictObject({
  pid: z.int(),
  tag: z.string().optional(),
  command: z.union([z.string(), z.array(z.string())]),
  user: z.enum(userNames),
  isTerminal: z.boolean(),
  state: z.enum(['running', 'sleeping', 'stopped', 'ended']),
  startedAt: timeSchema,
  cpuMs: z.number(),
  memoryBytes: z.number(),
  processes: z.int(),
  ending: endingReply.optional(),
})

const started = z.strictObject({ type: z.literal('started'), view: z.string(), pid: z.int() })
const ended = z.strictObject({ type: z.literal('ended'), ending: endingReply })
const programEvent = z.union([started, outputEvent, ended, errorEvent])

/** What a command printed and how it ended; base64 where it is no UTF-8. */
const captured = {
  ...endingReply.shape,
  exitCode: z.int().optional(),
  stdout: z.string(),
  stderr: z.string(),
  stdoutBase64: z.string().optional(),
  stderrBase64: z.string().optional(),
}

/** What a run in a sandbox of its own may say beside what any run may. */
export const runOwnSchema = z.strictObject({
  /** What the sandbox is to be like. */
  sandbox: specSchema.optional(),
  /** A pool that it is taken from instead. */
  pool: idSchema.optional(),
  fresh: z.enum(freshKinds).optional(),
  /** False: it is made for this run, also where such are kept ready. */
  ready: z.boolean().optional(),
  /** All of its standard input: text, or base64. */
  input: z.union([z.string(), z.strictObject({ base64: z.string() })]).optional(),
  /** The receipt of it comes with its end. */
  receipt: z.boolean().optional(),
  /** It is kept after its end, until it is released. */
  keep: z.boolean().optional(),
  /** What no rule of its network decides is asked for. */
  approvals: z.boolean().optional(),
})

const inputQuery = z.strictObject({ end: flagSchema.optional() })
const signalBody = z.strictObject({ signal: z.string().min(1).max(20) })
const killBody = z.strictObject({ reason: z.string().max(1000).optional() })
const approvalBody = z.strictObject({ approval: z.enum(networkApprovals) })
const begun = z.strictObject({ type: z.literal('begun'), run: z.string(), pid: z.int(), sandbox: infoReply, hasNetwork: z.boolean() })
const concluded = { receipt: receiptSchema.optional(), network: networkSummary.optional() }
const asked = z.strictObject({ type: z.literal('ask'), ask: z.string(), facts: networkFacts })

export const processShapes = {
  'processes.start': {
    body: runRequestSchema,
    judged: true,
    reply: z.union([z.strictObject({ pid: z.int() }), z.strictObject(captured)]),
    event: programEvent,
  },
  'processes.list': { query: z.strictObject(pageQuery), reply: pageOf(processReply) },
  'processes.attach': { body: z.strictObject({ replay: z.boolean().optional(), follow: z.boolean().optional() }), event: programEvent },
  'processes.output': { query: z.strictObject({ replay: flagSchema.optional(), follow: flagSchema.optional() }), event: programEvent },
  'processes.stdin': { query: inputQuery },
  'processes.signal': { body: signalBody },
  'processes.resize': { body: terminalSizeSchema },
  'processes.kill': { body: killBody },
  'processes.terminal': {},
  'runs.start': {
    body: z.intersection(runRequestSchema, runOwnSchema),
    judged: true,
    reply: z.strictObject({ ...captured, sandbox: infoReply, ...concluded }),
    event: z.union([
      begun,
      outputEvent,
      asked,
      z.strictObject({ type: z.literal('record'), record: networkRecord }),
      z.strictObject({ type: z.literal('ended'), ending: endingReply, ...concluded }),
      errorEvent,
    ]),
  },
  'runs.stdin': { query: inputQuery },
  'runs.signal': { body: signalBody },
  'runs.resize': { body: terminalSizeSchema },
  'runs.kill': { body: killBody },
  'runs.receipt': { reply: receiptSchema },
  'runs.summary': { reply: networkSummary },
  'runs.approve': { body: approvalBody },
  'runs.release': { body: z.strictObject({}), reply: z.strictObject({ network: networkSummary.optional() }) },
  'network.asks': { event: z.union([asked, errorEvent]) },
  'network.approve': { body: approvalBody },
} satisfies Record<string, Shape>
