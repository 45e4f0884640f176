// What a reader sees of the suites: a block for each as it ends, a table, and the last line.

/** @typedef {import('./suites.mjs').SuiteResult} SuiteResult */

const shownLines = 60

/** @param {readonly SuiteResult[]} results */
function totals(results) {
  return {
    passed: results.reduce((sum, { passed }) => sum + passed, 0),
    failed: results.reduce((sum, { failures }) => sum + failures.length, 0),
    skipped: results.reduce((sum, { skips }) => sum + skips.length, 0),
    unsteady: results.reduce((sum, { unsteady = [] }) => sum + unsteady.length, 0),
  }
}

/** @param {readonly SuiteResult[]} results */
export function countLine(results) {
  const { passed, failed, skipped, unsteady } = totals(results)
  const rest = [skipped === 0 ? [] : `${skipped} skipped`, unsteady === 0 ? [] : `${unsteady} unsteady`].flat()
  return [`${passed} passed`, `${failed} failed`, ...rest].join(', ')
}

/** A line for each reason: many cases are skipped for the same one. @param {SuiteResult['skips']} skips */
function skipLines(skips) {
  const reasons = [...new Set(skips.map(({ reason }) => reason))]
  return reasons.map((reason) => {
    const names = skips.filter((skip) => skip.reason === reason).map(({ name }) => name)
    return `  skipped ${names.length === 1 ? names[0] : `${names.length}, the first ${names[0]}`}: ${reason}`
  })
}

/** @param {string} word @param {SuiteResult['failures'][number]} failure */
function failureLines(word, { name, message }) {
  const lines = message.trimEnd().split('\n').slice(0, shownLines)
  return [`  ${word} ${name}`, ...lines.map((line) => `    ${line}`)]
}

/** @param {SuiteResult} result */
export function suiteBlock(result) {
  const lines = [`${result.failures.length === 0 ? '✓' : '✗'} ${result.name}: ${countLine([result])} in ${result.seconds.toFixed(1)} s`]
  lines.push(...skipLines(result.skips))
  for (const failure of result.failures) lines.push(...failureLines('FAILED', failure))
  for (const failure of result.unsteady ?? []) lines.push(...failureLines('UNSTEADY (failed beside others, passed alone)', failure))
  if (result.failures.length > 0 && result.output !== '') {
    lines.push(
      '  the end of its output:',
      ...result.output
        .trimEnd()
        .split('\n')
        .slice(-shownLines)
        .map((line) => `    | ${line}`),
    )
  }
  return `${lines.join('\n')}\n`
}

/** @param {readonly SuiteResult[]} results */
export function summaryTable(results) {
  const rows = results.map(({ name, passed, failures, skips, seconds }) => [
    name,
    String(passed),
    String(failures.length),
    String(skips.length),
    `${seconds.toFixed(1)} s`,
  ])
  const table = [['suite', 'passed', 'failed', 'skipped', 'time'], ...rows]
  const widths = [0, 1, 2, 3, 4].map((column) => Math.max(...table.map((row) => row[column]?.length ?? 0)))
  return table.map((row) => row.map((cell, column) => (column === 0 ? cell.padEnd(widths[0] ?? 0) : cell.padStart(widths[column] ?? 0))).join('  ')).join('\n')
}
