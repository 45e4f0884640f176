/**
 * Side by side, in one run: what sandboxed runs cost beside a plain spawn and beside the peers, which are made ready first and removed afterwards, also on Ctrl-C.
 * `npm run bench [-- --rounds N] [--minutes N] [--only SECTION]… [--without-peers] [--json] [--out DIR]`. A missed goal ends it with exit code 1.
 */
import { readFileSync } from 'node:fs'
import { constants } from 'node:os'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { environmentOf, layDownBurdens, measureSection, missedGoals, renderGoal, renderTable, sections, versionOf, writeReport } from '../dist/bench/index.js'
import * as library from '../dist/index.js'
import { docker } from './docker.mjs'
import { gvisor } from './gvisor.mjs'
import { oci } from './oci.mjs'
import { openPeers } from './peers/peers.mjs'
import { price } from './price.mjs'
import { fillReadme } from './readme.mjs'
import { server } from './server.mjs'
import { transfers } from './transfers.mjs'

const root = fileURLToPath(new URL('..', import.meta.url))
const { values } = parseArgs({
  options: {
    rounds: { type: 'string', default: '60' },
    only: { type: 'string', multiple: true, default: [] },
    /** Of the mixed load of the server. */
    minutes: { type: 'string', default: '10' },
    out: { type: 'string' },
    json: { type: 'boolean', default: false },
    'without-peers': { type: 'boolean', default: false },
  },
})
const cli = fileURLToPath(new URL('../dist/cli/main.js', import.meta.url))
const { version } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'))
const all = [...sections, oci, gvisor, docker, price, transfers, server]
const stop = new AbortController()
const asFound = { ...process.env }
// Before the peers take over what is left.
const without = layDownBurdens()
const say = (line) => process.stderr.write(`… ${line}\n`)

function check() {
  const stranger = values.only.find((name) => !all.some((section) => section.name === name))
  if (stranger !== undefined) throw new Error(`--only: there is no section ${stranger}; there are ${all.map(({ name }) => name).join(', ')}`)
  if (!(Number(values.minutes) > 0)) throw new Error(`--minutes: expected a number, got ${values.minutes}`)
  if (!/^[1-9]\d*$/.test(values.rounds)) throw new Error(`--rounds: expected a whole number, got ${values.rounds}`)
}

/** Only these have a place for them. */
function needsPeers(chosen) {
  return !values['without-peers'] && chosen.some(({ name }) => ['cold', 'idle'].includes(name))
}

async function withPeers(chosen, act) {
  if (!needsPeers(chosen)) return act({ found: [], missing: [] })
  const peers = await openPeers({ signal: stop.signal, say, asFound })
  try {
    return await act(peers)
  } finally {
    await peers[Symbol.asyncDispose]()
  }
}

async function measure(chosen, peers) {
  const platform = library.createPlatform()
  try {
    const ground = {
      ...library,
      platform,
      cli: [process.execPath, cli],
      peers,
      rounds: Number(values.rounds),
      minutes: Number(values.minutes),
      signal: stop.signal,
    }
    const tables = []
    for (const section of chosen) {
      say(section.title)
      const table = await measureSection(section, ground)
      tables.push(table)
      if (!values.json) process.stdout.write(`${renderTable(table).join('\n')}\n\n`)
    }
    return {
      environment: environmentOf({ version, commit: versionOf('git', ['-C', root, 'rev-parse', '--short', 'HEAD']), peers: peers.found, without }),
      tables,
    }
  } finally {
    await platform[Symbol.asyncDispose]()
  }
}

/** A part of a report must not take the place of a whole one. */
function keep(report, chosen) {
  const isWhole = chosen.length === all.length
  const user = report.environment.user === 'root' ? 'latest' : 'latest-ordinary-user'
  const name = isWhole ? user : 'partial'
  const folder = values.out ?? fileURLToPath(new URL('./results/', import.meta.url))
  for (const path of writeReport(report, { folder, name })) say(path)
  if (isWhole && user === 'latest' && values.out === undefined) fillReadme(report)
}

async function main() {
  check()
  const chosen = all.filter(({ name }) => values.only.length === 0 || values.only.includes(name))
  const report = await withPeers(chosen, (peers) => measure(chosen, peers))
  keep(report, chosen)
  if (values.json) process.stdout.write(`${JSON.stringify(report)}\n`)
  const missed = missedGoals(report)
  for (const goal of missed) process.stderr.write(`${renderGoal(goal)}\n`)
  return missed.length === 0 ? 0 : 1
}

/** The first asks for an orderly end; another one does not wait for it. */
function onSignal(name) {
  const code = 128 + constants.signals[name]
  if (stop.signal.aborted) process.exit(code)
  say(`${name}: removing what was made for the benchmark`)
  process.exitCode = code
  stop.abort(new Error(`stopped by ${name}`))
}
for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(name, onSignal)

try {
  const code = await main()
  process.exit(stop.signal.aborted ? process.exitCode : code)
} catch (error) {
  if (!stop.signal.aborted) process.stderr.write(`${error.stack}\n`)
  process.exit(stop.signal.aborted ? process.exitCode : 2)
}
