// Figures of matplotlib: the picture, and what it shows as data, compared field by field. Limits and ticks are set in the code where
// versions of the library would choose others.
import type { BarSeries, Chart, ChartAxis, ChartValue } from '../../../src/contract/charts.js'
import type { Entry, ExpectedResult } from './notebook.js'

const number = (low: number, high: number, ticks: readonly number[], more: Partial<ChartAxis> = {}): ChartAxis => ({
  label: null,
  unit: null,
  scale: 'linear',
  limits: [low, high],
  ticks: ticks.map((value) => ({ value, label: String(value) })),
  ...more,
})
const categories = (names: readonly string[], more: Partial<ChartAxis> = {}): ChartAxis => ({
  label: null,
  unit: null,
  scale: 'categorical',
  limits: null,
  ticks: names.map((value) => ({ value, label: value })),
  ...more,
})
const points = (label: string | null, pairs: readonly (readonly [ChartValue, ChartValue])[]) => ({ label, points: pairs, count: pairs.length })
const bars = (
  label: string | null,
  values: Readonly<Record<string, number>>,
  more: { starts?: readonly number[]; orientation?: BarSeries['orientation'] } = {},
): BarSeries => ({
  label,
  orientation: more.orientation ?? 'vertical',
  bars: Object.entries(values).map(([name, value], index) => ({ label: name, value, start: more.starts?.[index] ?? 0 })),
})

const xy = 'plt.xlim(0, 4); plt.xticks([0, 2, 4]); plt.ylim(0, 10); plt.yticks([0, 5, 10])'
const x = number(0, 4, [0, 2, 4])
const y = number(0, 10, [0, 5, 10])
const yOnly = 'plt.ylim(0, 10); plt.yticks([0, 5, 10])'
const figure = (chart: Chart, more: Partial<ExpectedResult> = {}): ExpectedResult => ({
  isMain: false,
  text: /^<Figure size \d+x\d+ with \d+ Axes>$/,
  hasPng: true,
  chart,
  ...more,
})
const needs = ['matplotlib']
const line: Chart = {
  type: 'line',
  title: null,
  x,
  y,
  series: [
    points(null, [
      [0, 1],
      [4, 9],
    ]),
  ],
} // prettier-ignore
const drawLine = `plt.plot([0, 4], [1, 9]); ${xy}`

const kinds: readonly Entry[] = [
  {
    name: 'lines, with labels and units',
    needs,
    source: `import matplotlib.pyplot as plt\nplt.plot([0, 1, 2], [1, float('nan'), 3], label='up')\nplt.plot([0, 4], [9, 1], 'r--')\nplt.title('Speed'); plt.xlabel('time (s)'); plt.ylabel('speed [m/s]'); plt.legend(); ${xy}`,
    results: [
      { text: /^\(\[<matplotlib/ },
      figure({
        type: 'line',
        title: 'Speed',
        x: { ...x, label: 'time (s)', unit: 's' },
        y: { ...y, label: 'speed [m/s]', unit: 'm/s' },
        series: [
          points('up', [
            [0, 1],
            [1, null],
            [2, 3],
          ]),
          points(null, [
            [0, 9],
            [4, 1],
          ]),
        ], // prettier-ignore
      }),
    ],
  },
  {
    name: 'points',
    needs,
    source: `plt.scatter([1, 2], [3.5, 4], label='a')\nplt.plot([3, 4], [5, 6], 'o', label='b')\n${xy};`,
    results: [
      figure({
        type: 'scatter',
        title: null,
        x,
        y,
        series: [
          points('a', [
            [1, 3.5],
            [2, 4],
          ]),
          points('b', [
            [3, 5],
            [4, 6],
          ]),
        ],
      }),
    ], // prettier-ignore
  },
  {
    name: 'bars',
    needs,
    source: `plt.bar(['p', 'q'], [3, 4]); plt.title('Bars'); ${yOnly};`,
    results: [figure({ type: 'bar', title: 'Bars', x: categories(['p', 'q']), y, series: [bars(null, { p: 3, q: 4 })] })],
  },
  {
    name: 'bars beside each other',
    needs,
    source: `for shift, label in ((-0.2, 'left'), (0.2, 'right')): plt.bar([shift, 1 + shift], [3 + shift, 4], width=0.4, label=label)\nplt.xticks([0, 1], ['p', 'q']); ${yOnly};`,
    results: [figure({ type: 'bar', title: null, x: categories(['p', 'q']), y, series: [bars('left', { p: 2.8, q: 4 }), bars('right', { p: 3.2, q: 4 })] })],
  },
  {
    name: 'bars on each other',
    needs,
    source: `plt.bar(['p', 'q'], [3, 4], label='low'); plt.bar(['p', 'q'], [1, 2], bottom=[3, 4], label='high'); ${yOnly};`,
    results: [
      figure({
        type: 'bar',
        title: null,
        x: categories(['p', 'q']),
        y,
        series: [bars('low', { p: 3, q: 4 }), bars('high', { p: 1, q: 2 }, { starts: [3, 4] })],
      }),
    ],
  },
  {
    name: 'bars that lie',
    needs,
    source: "plt.barh(['p', 'q'], [3, -2]); plt.xlim(-4, 4); plt.xticks([-4, 0, 4], ['low', 'none', 'high']);",
    results: [
      figure({
        type: 'bar',
        title: null,
        x: { ...number(-4, 4, []), scale: 'categorical', limits: null, ticks: ['low', 'none', 'high'].map((value) => ({ value, label: value })) },
        y: categories(['p', 'q']),
        series: [bars(null, { p: 3, q: -2 }, { orientation: 'horizontal' })],
      }),
    ],
  },
  {
    name: 'bars at numbers',
    needs,
    source: `plt.bar([1, 2.5], [3, 4]); ${xy};`,
    results: [
      figure({
        type: 'bar',
        title: null,
        x,
        y,
        series: [
          {
            label: null,
            orientation: 'vertical',
            bars: [
              { label: '1', value: 3, start: 0 },
              { label: '2.5', value: 4, start: 0 },
            ],
          },
        ],
      }),
    ], // prettier-ignore
  },
  {
    name: 'a histogram',
    needs,
    source: `plt.hist([0.5, 1, 1.5, 3], bins=[0, 1, 2.5, 4], label='h'); ${xy};`,
    results: [figure({ type: 'bar', title: null, x, y, series: [bars('h', { '0 – 1': 1, '1 – 2.5': 2, '2.5 – 4': 1 })] })],
  },
  {
    name: 'a pie',
    needs,
    source: "plt.pie([1, 3, 4], labels=['a', 'b', 'c'], autopct='%d'); plt.title('Pie');",
    results: [
      figure({
        type: 'pie',
        title: 'Pie',
        slices: [
          { label: 'a', value: 1, share: 0.125 },
          { label: 'b', value: 3, share: 0.375 },
          { label: 'c', value: 4, share: 0.5 },
        ],
      }),
    ], // prettier-ignore
  },
  {
    name: 'boxes',
    needs,
    source: `plt.boxplot([[1, 2, 3, 4, 10], [2, 3, 4]]); plt.xticks([1, 2], ['a', 'b']); ${yOnly};`,
    results: [
      figure({
        type: 'box',
        title: null,
        x: categories(['a', 'b']),
        y,
        boxes: [
          { label: 'a', min: 1, lowerQuartile: 2, median: 3, upperQuartile: 4, max: 4, outliers: [10] },
          { label: 'b', min: 2, lowerQuartile: 2.5, median: 3, upperQuartile: 3.5, max: 4, outliers: [] },
        ],
      }),
    ],
  },
  {
    name: 'bars with a line',
    needs,
    source: `plt.bar(['p', 'q'], [3, 4], label='b'); plt.plot(['p', 'q'], [5, 6], label='l'); plt.axhline(7); plt.title('Mixed'); ${yOnly};`,
    results: [
      figure({
        type: 'mixed',
        title: 'Mixed',
        x: categories(['p', 'q']),
        y,
        parts: [
          { type: 'bar', title: null, x: categories(['p', 'q']), y, series: [bars('b', { p: 3, q: 4 })] },
          {
            type: 'line',
            title: null,
            x: categories(['p', 'q']),
            y,
            series: [
              points('l', [
                ['p', 5],
                ['q', 6],
              ]),
            ],
          }, // prettier-ignore
        ],
      }),
    ],
  },
  {
    name: 'subplots',
    needs,
    source: `fig, axes = plt.subplots(1, 3)\nfig.suptitle('All')\nplt.sca(axes[0]); ${drawLine}; plt.title('First')\naxes[1].pie([1, 1])\naxes[2].axis('off')\nplt.sca(axes[0]);`,
    results: [
      figure({
        type: 'subplots',
        title: 'All',
        charts: [
          { ...line, title: 'First' },
          {
            type: 'pie',
            title: null,
            slices: [
              { label: '', value: 1, share: 0.5 },
              { label: '', value: 1, share: 0.5 },
            ],
          }, // prettier-ignore
        ],
      }),
    ],
  },
  {
    name: 'two scales',
    needs,
    source: `${drawLine}; plt.title('Twins')\nother = plt.twinx(); other.scatter([2], [50], label='s'); other.set_ylim(0, 100); other.set_yticks([0, 100]); other.set_ylabel('share (%)');`,
    results: [
      figure({
        type: 'mixed',
        title: 'Twins',
        x,
        y,
        parts: [
          { ...line, title: 'Twins' },
          { type: 'scatter', title: null, x, y: number(0, 100, [0, 100], { label: 'share (%)', unit: '%' }), series: [points('s', [[2, 50]])] },
        ],
      }),
    ],
  },
  {
    name: 'logarithms',
    needs,
    source: `plt.plot([0, 4], [1, 1000]); ${xy}; plt.yscale('log'); plt.ylim(1, 1000); plt.xscale('symlog'); plt.xlim(0, 4); plt.xticks([0, 1]);`,
    results: [
      figure({
        type: 'line',
        title: null,
        x: {
          ...number(0, 4, []),
          scale: 'symlog',
          ticks: [
            { value: 0, label: '0' },
            { value: 1, label: '10⁰' },
          ],
        }, // prettier-ignore
        y: {
          ...number(1, 1000, []),
          scale: 'log',
          ticks: [
            { value: 1, label: '10⁰' },
            { value: 10, label: '10¹' },
            { value: 100, label: '10²' },
            { value: 1000, label: '10³' },
          ],
        }, // prettier-ignore
        series: [
          points(null, [
            [0, 1],
            [4, 1000],
          ]),
        ], // prettier-ignore
      }),
    ],
  },
  {
    name: 'dates',
    needs,
    source: `from datetime import datetime, timedelta\nimport matplotlib.dates as dates\nstart = datetime(2024, 3, 1)\nplt.plot([start, start + timedelta(days=1, hours=6)], [1, 2]); plt.xlim(start, start + timedelta(days=2)); ${yOnly}\nplt.gca().xaxis.set_major_locator(dates.DayLocator()); plt.gca().xaxis.set_major_formatter(dates.DateFormatter('%d.%m.'));`,
    results: [
      figure({
        type: 'line',
        title: null,
        x: {
          label: null,
          unit: null,
          scale: 'datetime',
          limits: ['2024-03-01T00:00:00', '2024-03-03T00:00:00'],
          ticks: [
            { value: '2024-03-01T00:00:00', label: '01.03.' },
            { value: '2024-03-02T00:00:00', label: '02.03.' },
            { value: '2024-03-03T00:00:00', label: '03.03.' },
          ], // prettier-ignore
        },
        y,
        series: [
          points(null, [
            ['2024-03-01T00:00:00', 1],
            ['2024-03-02T06:00:00', 2],
          ]),
        ], // prettier-ignore
      }),
    ],
  },
  {
    name: 'points at categories',
    needs,
    source: `plt.scatter(['p', 'q', 'p'], [1, 2, 3]); ${yOnly};`,
    results: [
      figure({
        type: 'scatter',
        title: null,
        x: categories(['p', 'q']),
        y,
        series: [
          points(null, [
            ['p', 1],
            ['q', 2],
            ['p', 3],
          ]),
        ],
      }),
    ], // prettier-ignore
  },
  {
    name: 'errors of measurement',
    needs,
    source: `plt.errorbar([1, 2], [3, 4], yerr=0.5, capsize=3, label='e'); ${xy};`,
    results: [
      figure({
        type: 'line',
        title: null,
        x,
        y,
        series: [
          points('e', [
            [1, 3],
            [2, 4],
          ]),
        ],
      }),
    ], // prettier-ignore
  },
  {
    name: 'more points than are told',
    needs,
    source: `import numpy as np\nplt.plot(np.arange(10_000) / 2500, np.full(10_000, 2.0)); ${xy};`,
    results: [
      figure({
        type: 'line',
        title: null,
        x,
        y,
        series: [{ label: null, points: Array.from({ length: 5000 }, (_, at) => [(2 * at) / 2500, 2] as const), count: 10_000 }],
      }),
    ],
  },
  {
    name: 'an image has no such data',
    needs,
    source: `plt.imshow([[0, 1], [2, 3]], aspect='auto', extent=(0, 4, 0, 10)); plt.colorbar(); plt.sca(plt.gcf().axes[0]); ${xy}; plt.title('Image');`,
    results: [figure({ type: 'unknown', title: 'Image', x, y })],
  },
  { name: 'nor has a polar plot', needs, source: "plt.polar([0, 1], [1, 2]); plt.title('Polar');", results: [figure({ type: 'unknown', title: 'Polar' })] },
]

const times: readonly Entry[] = [
  {
    name: 'a figure is shown by show() and not again',
    needs,
    source: `${drawLine}; plt.show(); print('after')`,
    stdout: 'after\n',
    results: [figure(line)],
    order: ['result', 'stdout after\n'],
  },
  { name: 'two figures', needs, source: `${drawLine}\nplt.figure(); ${drawLine};`, results: [figure(line), figure(line)] },
  { name: 'a figure as the value', needs, source: `fig = plt.figure(); ${drawLine}\nfig`, results: [figure(line, { isMain: true })] },
  { name: 'later again', needs, source: 'fig', results: [figure(line, { isMain: true })] },
  {
    name: 'displayed on the way',
    needs,
    source: `fig = plt.figure(); ${drawLine}\ndisplay(fig)\nprint('after')`,
    stdout: 'after\n',
    results: [figure(line)],
    order: ['result', 'stdout after\n'],
  },
  { name: 'shown, and the value', needs, source: `fig = plt.figure(); ${drawLine}; plt.show()\nfig`, results: [figure(line), { text: /^<Figure/ }] },
  {
    name: 'shown, changed, and the value',
    needs,
    source: `fig = plt.figure(); ${drawLine}; plt.show()\nfig.gca().set_title('New')\nfig`,
    results: [figure(line), figure({ ...line, title: 'New' } as Chart, { isMain: true })],
  },
  { name: 'the magic for figures is understood without IPython', needs, source: `%matplotlib inline\n${drawLine};`, results: [figure(line)] },
  { name: 'closed, and never shown', needs, source: `${drawLine}; plt.close()` },
  { name: 'drawn before an error', needs, source: `${drawLine}\n1 / 0`, results: [figure(line)], error: { name: 'ZeroDivisionError', line: 2 } },
  {
    name: 'another backend',
    needs,
    source: `import matplotlib\nmatplotlib.use('svg')\n${drawLine}; plt.show()\nmatplotlib.use('agg')`,
    results: [figure(line)],
  },
  {
    name: 'without pyplot',
    needs,
    source:
      'from matplotlib.figure import Figure\nfig = Figure()\naxes = fig.add_subplot(xlim=(0, 4), xticks=[0, 2, 4], ylim=(0, 10), yticks=[0, 5, 10])\naxes.plot([0, 4], [1, 9])\nfig',
    results: [figure(line, { isMain: true })],
  },
  {
    name: 'an artist that cannot be read costs nothing but its data',
    needs,
    source: `${drawLine}; plt.gca().lines[0].get_visible = lambda: 1 / 0 if __import__('sys')._getframe(1).f_code.co_filename.startswith('glovebox') else True\nplt.title('Odd');`,
    results: [figure({ type: 'unknown', title: 'Odd' })],
  },
  {
    name: 'a figure that cannot be drawn',
    needs,
    source: "plt.plot([1, 2]); plt.title('$\\\\nosuch$');",
    stderr: /^the figure could not be drawn: ValueError: [^]*nosuch/,
    results: [{ isMain: false, text: /^<Figure/, types: ['application/vnd.glovebox.chart+json'] }],
  },
  {
    name: 'bars of pandas',
    needs: ['matplotlib', 'pandas'],
    source: `import pandas as pd\npd.DataFrame({'k': ['p', 'q'], 'a': [1, 2], 'b': [3, 4]}).plot.bar(x='k', title='Frame'); ${yOnly};`,
    results: [
      figure({ type: 'bar', title: 'Frame', x: categories(['p', 'q'], { label: 'k' }), y, series: [bars('a', { p: 1, q: 2 }), bars('b', { p: 3, q: 4 })] }),
    ],
  },
  {
    name: 'times of pandas',
    needs: ['matplotlib', 'pandas'],
    source: `pd.Series([1, 2, 3], index=pd.date_range('2024-01-01', periods=3), name='s').plot(legend=True); ${yOnly}; plt.gca().set_xticks([]);`,
    results: [
      figure({
        type: 'line',
        title: null,
        x: { label: null, unit: null, scale: 'datetime', limits: ['2024-01-01T00:00:00', '2024-01-03T00:00:00'], ticks: [] },
        y,
        series: [
          points('s', [
            ['2024-01-01T00:00:00', 1],
            ['2024-01-02T00:00:00', 2],
            ['2024-01-03T00:00:00', 3],
          ]),
        ], // prettier-ignore
      }),
    ],
  },
]

const frame = "pd.DataFrame({'k': ['a', 'a', 'b', 'b'], 'v': [1, 2, 3, 9], 'h': ['m', 'n', 'm', 'n']})"
const bySeaborn: readonly Entry[] = [
  {
    name: 'bars of seaborn',
    needs: ['matplotlib', 'pandas', 'seaborn'],
    source: `import seaborn, pandas as pd\nframe = ${frame}\nseaborn.barplot(data=frame, x='k', y='v', hue='h', errorbar=None); ${yOnly};`,
    results: [
      figure({
        type: 'bar',
        title: null,
        x: categories(['a', 'b'], { label: 'k' }),
        y: { ...y, label: 'v' },
        series: [bars('m', { a: 1, b: 3 }), bars('n', { a: 2, b: 9 })],
      }),
    ],
  },
  {
    name: 'points of seaborn',
    needs: ['matplotlib', 'pandas', 'seaborn'],
    source: `seaborn.scatterplot(data=frame, x='k', y='v', hue='h'); ${yOnly};`,
    results: [
      figure({
        type: 'scatter',
        title: null,
        x: categories(['a', 'b'], { label: 'k' }),
        y: { ...y, label: 'v' },
        series: [
          points('m', [
            ['a', 1],
            ['b', 3],
          ]),
          points('n', [
            ['a', 2],
            ['b', 9],
          ]),
        ],
      }),
    ],
  },
]

export const chartEntries: readonly Entry[] = [...kinds, ...times, ...bySeaborn]
