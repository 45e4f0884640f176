/** What looks wrong about a sandbox without any rule being broken. Told, never acted on. */
export const anomalyKinds = ['denied-burst', 'port-scan', 'host-scan', 'limit-hits', 'output-flood', 'unusual-usage'] as const
export type AnomalyKind = (typeof anomalyKinds)[number]

export interface Anomaly {
  readonly kind: AnomalyKind
  /** With the numbers that it is told for. */
  readonly reason: string
}
