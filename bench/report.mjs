import { execFileSync } from 'node:child_process'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import os from 'node:os'
import { fileURLToPath } from 'node:url'

/** What a reader needs to compare two reports; nothing that names the machine. */
export function environment() {
  const version = (file, args) => {
    try {
      return execFileSync(file, args, { encoding: 'utf8' }).trim()
    } catch {
      return 'missing'
    }
  }
  return {
    date: new Date().toISOString(),
    commit: version('git', ['rev-parse', '--short', 'HEAD']),
    kernel: os.release(),
    cpu: /model name\s*: (.*)/.exec(readFileSync('/proc/cpuinfo', 'utf8'))?.[1] ?? os.arch(),
    cores: os.cpus().length,
    memoryGiB: Math.round(os.totalmem() / 2 ** 30),
    node: process.version,
    python: version('/usr/bin/python3', ['--version']),
    bwrap: version('bwrap', ['--version']),
    user: process.getuid() === 0 ? 'root' : 'ordinary',
  }
}

export function markdown({ environment: facts, tables }) {
  const lines = ['# Benchmark', '', ...Object.entries(facts).map(([key, value]) => `- ${key}: ${value}`)]
  for (const table of tables) {
    lines.push('', `## ${table.title}`, '', '| what | p50 ms | p95 ms | p99 ms | ratio |', '|---|---|---|---|---|')
    for (const row of table.rows) {
      lines.push(`| ${row.name} | ${row.p50.toFixed(2)} | ${row.p95.toFixed(2)} | ${row.p99.toFixed(2)} | ${row.ratio.toFixed(2)} |`)
    }
    for (const goal of table.goals ?? []) lines.push('', `${goal.met ? 'met' : '**MISSED**'}: ${goal.text} — measured ${goal.measured.toFixed(2)}`)
  }
  return `${lines.join('\n')}\n`
}

export function writeReport(report) {
  const folder = fileURLToPath(new URL('./results/', import.meta.url))
  mkdirSync(folder, { recursive: true })
  const text = markdown(report)
  const name = report.environment.user === 'root' ? 'latest' : 'latest-ordinary-user'
  writeFileSync(`${folder}${name}.json`, `${JSON.stringify(report, null, 2)}\n`)
  writeFileSync(`${folder}${name}.md`, text)
  return text
}
