/** What the tools take and give, in the words of those who call them. Unknown arguments are refused by name. */
import * as z from 'zod'
import { languages } from '../contract/code.js'

const seconds = z.number().min(0.1).max(86_400).optional().describe('Wall time in seconds; never more than the sandbox allows')

export const runCodeInput = z.strictObject({
  code: z.string().describe('The source. The value of a last expression is shown; figures are shown without plt.show()'),
  language: z.enum(languages).default('python').describe('Each language has one interpreter that keeps its variables from call to call'),
  timeout_seconds: seconds,
  restart: z.boolean().default(false).describe('Begin with an empty memory. Files stay'),
})

const failureOutput = z
  .object({ code: z.string(), message: z.string(), hint: z.string().optional(), next: z.string(), retryable: z.boolean() })
  .describe('Set when the tool itself failed rather than what it ran: what is wrong, and what to do next')
  .optional()

const note = z.string().optional().describe('What has to be known before the answer is believed, such as that the sandbox is a new one')
const cut = z.number().describe('How many characters were left out of the middle')

const resultOutput = z.object({
  is_main: z.boolean().describe('The value of the last expression, rather than something displayed on the way'),
  types: z.array(z.string()),
  text: z.string().optional(),
  chart: z.unknown().optional().describe('What a figure shows: title, axes, series'),
  table: z.unknown().optional().describe('Columns of a data frame with their values; rows is the true count'),
})

const artifactOutput = z.object({
  path: z.string(),
  uri: z.string().describe('Read it as a resource, or its path with read_file'),
  change: z.enum(['created', 'changed']),
  size: z.number(),
  mime: z.string(),
  sha256: z.string(),
})

export const runCodeOutput = z.object({
  status: z.enum(['ok', 'error', 'exit', 'interrupted', 'timed-out', 'crashed']).optional(),
  execution: z.number().optional(),
  text: z.string().optional().describe('The value of the last expression'),
  stdout: z.string().optional(),
  stdout_cut: cut.optional(),
  stderr: z.string().optional(),
  stderr_cut: cut.optional(),
  output_dropped: z.number().optional().describe('Bytes printed before it was killed that nobody has'),
  results: z.array(resultOutput).optional(),
  results_dropped: z.number().optional().describe('How many more results there were'),
  error: z.object({ name: z.string(), value: z.string(), traceback: z.string(), line: z.number().optional(), column: z.number().optional() }).optional(),
  exit_code: z.number().optional(),
  outcome: z.string().optional().describe('How the interpreter ended, where it did'),
  state_kept: z.boolean().optional().describe('Whether variables are still there for the next call'),
  artifacts: z.array(artifactOutput).optional(),
  wall_ms: z.number().optional(),
  note,
  failure: failureOutput,
})

export const runCommandInput = z.strictObject({
  command: z.string().min(1).describe('A line for the shell of the sandbox'),
  cwd: z.string().optional().describe('Where it runs; /workspace when not given'),
  stdin: z.string().optional().describe('What it reads; nothing when not given'),
  timeout_seconds: seconds,
})

export const runCommandOutput = z.object({
  outcome: z.enum(['exited', 'signaled', 'timed-out', 'out-of-memory', 'output-limit', 'killed', 'not-started']).optional(),
  exit_code: z.number().optional(),
  stdout: z.string().optional(),
  stdout_cut: cut.optional(),
  stderr: z.string().optional(),
  stderr_cut: cut.optional(),
  wall_ms: z.number().optional(),
  note,
  failure: failureOutput,
})

const path = z.string().min(1).describe('Absolute, or below /workspace')

export const readFileInput = z.strictObject({
  path,
  offset: z.int().min(0).default(0).describe('In bytes from the beginning'),
  length: z.int().min(1).max(1_048_576).default(65_536).describe('At most so many bytes; pictures are always read whole'),
  encoding: z.enum(['auto', 'text', 'base64']).default('auto').describe('auto: text as text, pictures as pictures, anything else as base64'),
})

export const readFileOutput = z.object({
  path: z.string().optional(),
  size: z.number().optional().describe('Of the whole file, in bytes'),
  mime: z.string().optional(),
  offset: z.number().optional(),
  next_offset: z.number().optional().describe('Where to read on; not set at the end of the file'),
  encoding: z.enum(['text', 'base64', 'image']).optional(),
  content: z.string().optional(),
  note,
  failure: failureOutput,
})

export const writeFileInput = z.strictObject({
  path,
  content: z.string(),
  encoding: z.enum(['text', 'base64']).default('text'),
  append: z.boolean().default(false).describe('At the end of what is there, instead of in its place'),
})

export const writeFileOutput = z.object({
  path: z.string().optional(),
  uri: z.string().optional(),
  size: z.number().optional(),
  note,
  failure: failureOutput,
})

export const listFilesInput = z.strictObject({
  path: z.string().min(1).default('/workspace'),
  depth: z.int().min(1).max(64).default(1).describe('1 is the folder itself; more lists what is beneath'),
  glob: z.string().optional().describe('Only what matches, such as **/*.csv'),
  limit: z.int().min(1).max(2000).default(500),
})

export const listFilesOutput = z.object({
  path: z.string().optional(),
  entries: z
    .array(
      z.object({
        path: z.string(),
        type: z.enum(['file', 'folder', 'link', 'fifo', 'socket', 'device']),
        size: z.number(),
        modified: z.string(),
        target: z.string().optional(),
      }),
    )
    .optional(),
  truncated: z.boolean().optional(),
  note,
  failure: failureOutput,
})
