import { containmentGroups } from '../conformance/index.js'
import { htmlStyle } from './html-style.js'
import { type CaseReport, cellOf, type CheckReport, type Column, columnsOf, type DriverReport, type VerifyReport } from './report.js'

/** A page that needs nothing else: no script, no font, no image, nothing that is fetched. What comes from a guest is text. */
export function renderHtml(report: VerifyReport): string {
  const title = `glovebox verify: ${report.counts.failed === 0 ? 'everything held' : `${report.counts.failed} did not hold`}`
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="color-scheme" content="light dark">
<title>${escapeHtml(title)}</title>
<style>${htmlStyle}</style>
</head>
<body>
<main>
${head(report)}
${matrix(report)}
${failures(report)}
${absences(report)}
${containmentGroups.map((group) => section(group, report)).join('\n')}
</main>
</body>
</html>
`
}

const entities: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' }

/** Controls stand for themselves as a mark: nothing of a guest's turns a line around. */
function escapeHtml(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is replaced here
  const visible = text.replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]/gu, '\ufffd')
  return visible.replace(/[&<>"']/g, (character) => entities[character] ?? character)
}

function head({ version, host, startedAt, durationMs, counts, ok }: VerifyReport): string {
  const verdict = counts.failed > 0 ? `${counts.failed} did not hold` : ok ? 'Everything held' : 'Nothing could be asked'
  const who = host.uid === 0 ? 'root' : `user ${String(host.uid)}`
  return `<header class="${ok ? 'held' : 'failed'}">
<h1>${ok ? '✓' : '✗'} ${escapeHtml(verdict)}</h1>
<p>glovebox ${escapeHtml(version)} attacked itself on ${escapeHtml(host.system)} as ${escapeHtml(who)}, <time>${escapeHtml(startedAt)}</time>, for ${Math.round(durationMs / 1000)} s.</p>
<p class="counts"><b>${counts.cases}</b> cases <b>${counts.checks}</b> checks <b>${counts.held}</b> held <b>${counts.failed}</b> failed <b>${counts.skipped}</b> skipped</p>
</header>`
}

function matrix(report: VerifyReport): string {
  const columns = columnsOf(report)
  const drivers = [...new Set(columns.map(({ driver }) => driver))]
  const heads = drivers.map((driver) => `<th colspan="${columns.filter((column) => column.driver === driver).length}">${escapeHtml(driver)}</th>`)
  const rows = containmentGroups.flatMap((group) => {
    const cells = columns.map((column) => cellOf(report, group, column))
    if (cells.every(({ held, failed, skipped }) => held + failed + skipped === 0)) return []
    return [`<tr><th scope="row"><a href="#${group}">${group}</a></th>${cells.map(matrixCell).join('')}</tr>`]
  })
  return `<div class="wide"><table class="matrix">
<thead><tr><td></td>${heads.join('')}</tr><tr><td></td>${columns.map(({ place = '' }) => `<th>${place}</th>`).join('')}</tr></thead>
<tbody>${rows.join('\n')}</tbody>
</table></div>`
}

function matrixCell({ held, failed, skipped }: ReturnType<typeof cellOf>): string {
  if (failed > 0) return `<td class="failed">✗ ${failed}</td>`
  if (held > 0) return `<td class="held">✓ ${held}</td>`
  return `<td class="skipped">${skipped > 0 ? `– ${skipped}` : ''}</td>`
}

function where({ driver, place }: Column): string {
  return place === undefined ? driver : `${driver} ${place}`
}

function failures({ cases }: VerifyReport): string {
  const failed = cases.filter(({ results }) => results.some(({ verdict }) => verdict === 'failed'))
  if (failed.length === 0) return ''
  return `<section><h2>What did not hold</h2>${failed.map((each) => caseOf(each, { isOpen: true })).join('\n')}</section>`
}

function absences({ drivers }: VerifyReport): string {
  const lines = drivers.flatMap((driver) => absence(driver))
  return lines.length === 0 ? '' : `<section><h2>What was not asked</h2><ul>${lines.map((line) => `<li>${line}</li>`).join('')}</ul></section>`
}

function absence({ driver, why, hint, places }: DriverReport): string[] {
  if (why !== undefined) return [`<b>${escapeHtml(driver)}</b>: ${escapeHtml(why)}${hint === undefined ? '' : ` <code>${escapeHtml(hint)}</code>`}`]
  return Object.entries(places).flatMap(([place, { why: lack }]) => (lack === undefined ? [] : [`<b>${escapeHtml(driver)} ${place}</b>: ${escapeHtml(lack)}`]))
}

function section(group: string, { cases }: VerifyReport): string {
  const own = cases.filter((each) => each.group === group)
  return own.length === 0 ? '' : `<section id="${group}"><h2>${group}</h2>${own.map((each) => caseOf(each, { isOpen: false })).join('\n')}</section>`
}

function caseOf(each: CaseReport, { isOpen }: { readonly isOpen: boolean }): string {
  const { id, name, tries, means, threats, results } = each
  const worst = results.some(({ verdict }) => verdict === 'failed') ? 'failed' : results.some(({ verdict }) => verdict === 'held') ? 'held' : 'skipped'
  const mark = { failed: '✗', held: '✓', skipped: '–' }[worst]
  return `<details class="${worst}"${isOpen ? ' open' : ''}><summary><span class="mark">${mark}</span> <code>${escapeHtml(id)}</code> ${escapeHtml(name)}</summary>
<dl><dt>tries</dt><dd>${escapeHtml(tries)}</dd><dt>a failure means</dt><dd>${escapeHtml(means)}</dd><dt>threats</dt><dd>${escapeHtml(threats.join(' '))}</dd></dl>
<table class="checks">${results.map(checkRow).join('\n')}</table></details>`
}

function checkRow(check: CheckReport): string {
  const { verdict, reason, observed, ms } = check
  const said = verdict === 'failed' ? `${reason}: ${observed}` : verdict === 'skipped' ? reason : observed
  return `<tr class="${verdict}"><th scope="row">${escapeHtml(where(check))}</th><td>${verdict}</td><td class="said">${escapeHtml(said)}</td><td class="ms">${ms} ms</td></tr>`
}
