/** What a figure shows, so that an interface can draw it again. Values are numbers, or text where the axis has categories or dates (ISO 8601). */
export type ChartValue = number | string | null

export interface ChartAxis {
  readonly label: string | null
  /** What the label says in brackets at its end, such as `s` of `time (s)`. */
  readonly unit: string | null
  readonly scale: 'linear' | 'log' | 'symlog' | 'logit' | 'datetime' | 'categorical'
  readonly limits: readonly [ChartValue, ChartValue] | null
  readonly ticks: readonly { readonly value: ChartValue; readonly label: string }[]
}

export type Chart =
  | { readonly type: 'line' | 'scatter'; readonly title: string | null; readonly x: ChartAxis; readonly y: ChartAxis; readonly series: readonly PointSeries[] }
  | { readonly type: 'bar'; readonly title: string | null; readonly x: ChartAxis; readonly y: ChartAxis; readonly series: readonly BarSeries[] }
  | {
      readonly type: 'pie'
      readonly title: string | null
      readonly slices: readonly { readonly label: string; readonly value: number; readonly share: number }[]
    }
  | { readonly type: 'box'; readonly title: string | null; readonly x: ChartAxis; readonly y: ChartAxis; readonly boxes: readonly ChartBox[] }
  | { readonly type: 'mixed'; readonly title: string | null; readonly x: ChartAxis; readonly y: ChartAxis; readonly parts: readonly Chart[] }
  | { readonly type: 'subplots'; readonly title: string | null; readonly charts: readonly Chart[] }
  /** Drawn by means that have no data of these kinds. */
  | { readonly type: 'unknown'; readonly title: string | null; readonly x?: ChartAxis; readonly y?: ChartAxis }

export interface PointSeries {
  readonly label: string | null
  readonly points: readonly (readonly [ChartValue, ChartValue])[]
  /** Where there are more than are told. */
  readonly count: number
}

export interface BarSeries {
  readonly label: string | null
  readonly orientation: 'vertical' | 'horizontal'
  readonly bars: readonly { readonly label: string; readonly value: number; readonly start: number }[]
}

export interface ChartBox {
  readonly label: string
  readonly min: number
  readonly lowerQuartile: number
  readonly median: number
  readonly upperQuartile: number
  readonly max: number
  readonly outliers: readonly number[]
}
