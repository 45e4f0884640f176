import type { Probe } from '../contract/driver.js'
import type { Colors } from './print.js'

const labelWidth = 16

/** Drivers beside each other, and what each can enforce here; empty where there are fewer than two to compare. Those that are not available are named below it. */
export function driverMatrix(probes: readonly Probe[], colors: Colors): string[] {
  const compared = probes.filter(({ isolates, available }) => isolates && available)
  const others = probes.filter(({ isolates, available }) => isolates && !available).map(({ driver }) => driver)
  const [first] = compared
  if (first === undefined || compared.length < 2) return []
  const widths = compared.map(({ driver, tier }) => Math.max(driver.length, tier.length) + 2)
  const row = (label: string, cells: readonly string[]): string => `  ${label.padEnd(labelWidth)}${cells.join('')}`.trimEnd()
  const marks = (label: string, holds: (probe: Probe) => boolean): string => {
    const cells = compared.map((probe, index) => {
      const isHeld = holds(probe)
      return (isHeld ? colors.green : colors.yellow)((isHeld ? 'yes' : '–').padEnd(widths[index] ?? 0))
    })
    return row(label, cells)
  }
  const rows = [
    ...(Object.keys(first.limits) as (keyof Probe['limits'])[]).map((name) => marks(name, ({ limits }) => limits[name].enforced)),
    marks('syscalls', ({ filtersSyscalls }) => filtersSyscalls),
    ...(Object.keys(first.features) as (keyof Probe['features'])[]).map((name) => marks(name, ({ features }) => features[name].available)),
    ...(Object.keys(first.users) as (keyof Probe['users'])[]).map((name) => marks(`user ${name}`, ({ users }) => users[name].available)),
  ]
  const head = row(
    '',
    compared.map(({ driver }, index) => driver.padEnd(widths[index] ?? 0)),
  )
  return [
    [
      colors.bold('drivers and what each can enforce here'),
      head,
      row(
        'tier',
        compared.map(({ tier }, index) => tier.padEnd(widths[index] ?? 0)),
      ),
      ...rows,
      ...(others.length === 0 ? [] : [`  ${colors.dim(`not available: ${others.join(', ')}`)}`]),
    ].join('\n'),
  ]
}
