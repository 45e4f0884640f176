import type { Receipt, ReceiptControl } from '../contract/receipt.js'

/** What a receipt does not prove, and why: a sentence for each reason, what is not enforced first. Empty when all is proven. */
export function explainReceipt({ controls, driver, inspected }: Pick<Receipt, 'controls' | 'driver' | 'inspected'>): string[] {
  const of = (verdict: ReceiptControl['verdict']): ReceiptControl[] => controls.filter((control) => control.verdict === verdict)
  return [
    ...(driver.tier === 'none' ? [`nothing is isolated: driver ${driver.name} builds no walls`] : []),
    ...(driver.tier === 'none' || inspected.complete ? [] : ['not every process and thread that was running when this was issued was looked at']),
    ...byReason(of('not-enforced'), ({ why, source }) => why ?? source).map(([names, why]) => `${names} ${isAre(names)} not enforced: ${why}`),
    ...byReason(of('told'), ({ source }) => source).map(([names, source]) => `${names} ${isAre(names)} only told, by ${source}`),
    ...byReason(of('asserted'), ({ source }) => source).map(([names, source]) => `${names} ${isAre(names)} only asserted: ${source}`),
    ...byReason(
      controls.filter(({ verdict, why }) => verdict !== 'not-enforced' && why !== undefined),
      ({ why }) => why ?? '',
    ).map(([names, why]) => `${names}: ${why}`),
  ]
}

function isAre(names: string): string {
  return names.includes(', ') ? 'are' : 'is'
}

/** Names that share a reason, together. */
function byReason(controls: readonly ReceiptControl[], reasonOf: (control: ReceiptControl) => string): [names: string, reason: string][] {
  const names = new Map<string, Set<string>>()
  for (const control of controls) names.set(reasonOf(control), (names.get(reasonOf(control)) ?? new Set()).add(control.control))
  return [...names].map(([reason, all]) => [[...all].join(', '), reason])
}
