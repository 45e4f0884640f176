// Values, and the forms in which they come.
import type { Entry } from './notebook.js'

const rich = (method: string, value: string) => `class Rich:\n    def ${method}(self): return ${value}\n    def __repr__(self): return 'rich'\nRich()`

export const resultEntries: readonly Entry[] = [
  { name: 'HTML', source: rich('_repr_html_', "'<b>'"), results: [{ text: 'rich', values: { 'text/html': '<b>' } }] },
  { name: 'Markdown', source: rich('_repr_markdown_', "'*a*'"), results: [{ text: 'rich', values: { 'text/markdown': '*a*' } }] },
  { name: 'SVG', source: rich('_repr_svg_', "'<svg/>'"), results: [{ text: 'rich', values: { 'image/svg+xml': '<svg/>' } }] },
  { name: 'PNG', source: rich('_repr_png_', "b'\\x89PNG'"), results: [{ text: 'rich', values: { 'image/png': 'iVBORw==' } }] },
  { name: 'JPEG, with metadata', source: rich('_repr_jpeg_', "(b'\\xff\\xd8', {'width': 1})"), results: [{ text: 'rich', values: { 'image/jpeg': '/9g=' } }] },
  { name: 'PDF', source: rich('_repr_pdf_', "b'%PDF'"), results: [{ text: 'rich', values: { 'application/pdf': 'JVBERg==' } }] },
  { name: 'LaTeX', source: rich('_repr_latex_', "'$x$'"), results: [{ text: 'rich', values: { 'text/latex': '$x$' } }] },
  { name: 'JSON', source: rich('_repr_json_', "{'a': [1, float('inf')]}"), results: [{ text: 'rich', values: { 'application/json': { a: [1, null] } } }] },
  { name: 'JavaScript', source: rich('_repr_javascript_', "'1'"), results: [{ text: 'rich', values: { 'application/javascript': '1' } }] },
  {
    name: 'a bundle',
    source: rich('_repr_mimebundle_', "{'text/plain': 'mine', 'text/html': '<i>', 'application/x-own': 'own'}"),
    results: [{ text: 'mine', values: { 'text/html': '<i>', 'application/x-own': 'own' } }],
  },
  {
    name: 'a bundle that is displayed',
    source: "display({'text/plain': 'p', 'text/html': 'h'}, raw=True)",
    results: [{ isMain: false, text: 'p', values: { 'text/html': 'h' } }],
  },
  {
    name: 'a form that fails is told',
    source: rich('_repr_html_', '1 / 0'),
    results: [{ text: 'rich' }],
    stderr: '_repr_html_ of Rich raised ZeroDivisionError: division by zero\n',
  },
  { name: 'a mock has no forms', source: 'from unittest.mock import Mock\nMock()', results: [{ text: /^<Mock id=/ }] },
  { name: 'a class has none either', source: 'Rich', results: [{ text: "<class '__main__.Rich'>" }] },
  {
    name: 'a repr that raises',
    source: "class Broken:\n    def __repr__(self): raise ValueError('no')\nBroken()",
    results: [{ text: '<Broken object whose __repr__ raised ValueError: no>' }],
  },
  {
    name: 'a dict',
    source: "{'a': [1, 2.5, None, True, 'é']}",
    results: [{ text: "{'a': [1, 2.5, None, True, 'é']}", values: { 'application/json': { a: [1, 2.5, null, true, 'é'] } } }],
  },
  { name: 'a dict that is no JSON', source: "[{1: 2}, {'a': float('nan')}, {'a': {1}}]", results: [{ text: "[{1: 2}, {'a': nan}, {'a': {1}}]" }] },
  { name: 'bytes', source: "b'\\x00a'", results: [{ text: "b'\\x00a'" }] },
  { name: 'half a character', source: "'\\ud800'", results: [{ text: "'\\ud800'" }] },
  { name: 'a list that contains itself', source: 'knot = [1]\nknot.append(knot)\nknot', results: [{ text: '[1, [...]]' }] },
  {
    name: 'a result that is too large',
    source: "'é' * 1000",
    given: { options: { 'result-bytes': '219' } },
    results: [{ text: `'${'é'.repeat(100)}`, cut: ['text/plain'] }],
  },
  {
    name: 'forms that do not fit',
    source:
      "class Large:\n    def _repr_html_(self): return 'h' * 1000\n    def _repr_png_(self): return b'p' * 1000\n    def __repr__(self): return 'large'\nLarge()",
    given: { options: { 'result-bytes': '500' } },
    results: [{ text: 'large', cut: ['image/png', 'text/html'], patterns: { 'text/html': /^h{400,}$/ } }],
  },
  { name: 'a list of ten million', source: 'list(range(10**7))', results: [{ text: /^\[0, 1, 2, 3, /, cut: ['text/plain'] }] },
  {
    name: 'a DataFrame',
    needs: ['pandas'],
    source: [
      'import pandas as pd',
      "df = pd.DataFrame({'n': [1, 2], 'f': [1.5, None], 's': ['a', None], 'b': [True, False], 't': pd.to_datetime(['2024-01-01', '2024-01-02 12:30']),",
      "  'd': pd.to_timedelta(['1 days', '90 s']), 'c': pd.Categorical(['u', 'v']), 'o': [{1}, None]})",
      'df',
    ].join('\n'),
    results: [
      {
        text: /^ +n +f +s/,
        patterns: { 'text/html': /<table border="1" class="dataframe">/ },
        table: {
          columns: [
            { name: 'n', type: 'integer', values: [1, 2] },
            { name: 'f', type: 'number', values: [1.5, null] },
            { name: 's', type: 'string', values: ['a', null] },
            { name: 'b', type: 'boolean', values: [true, false] },
            { name: 't', type: 'datetime', values: ['2024-01-01T00:00:00', '2024-01-02T12:30:00'] },
            { name: 'd', type: 'duration', values: ['P1DT0H0M0S', 'P0DT0H1M30S'] },
            { name: 'c', type: 'category', values: ['u', 'v'] },
            { name: 'o', type: 'other', values: ['{1}', null] },
          ],
          rows: 2,
          index: { name: '', type: 'integer', values: [0, 1] },
        },
      },
    ],
  },
  {
    name: 'a DataFrame of a million rows',
    needs: ['pandas'],
    source: "pd.DataFrame({'n': range(1_000_000)})",
    results: [
      {
        patterns: { 'text/html': /1000000 rows/ },
        table: {
          columns: [{ name: 'n', type: 'integer', values: Array.from({ length: 1000 }, (_, row) => row) }],
          rows: 1_000_000,
          index: { name: '', type: 'integer', values: Array.from({ length: 1000 }, (_, row) => row) },
        },
      },
    ],
  },
  {
    name: 'a Series',
    needs: ['pandas'],
    source: "pd.Series([1.5, 2], index=pd.Index(['a', 'b'], name='key'), name='v')",
    results: [
      {
        text: 'key\na    1.5\nb    2.0\nName: v, dtype: float64',
        patterns: { 'text/html': /<th>v<\/th>/ },
        table: { columns: [{ name: 'v', type: 'number', values: [1.5, 2] }], rows: 2, index: { name: 'key', type: 'string', values: ['a', 'b'] } },
      },
    ],
  },
  {
    name: 'levels of names',
    needs: ['pandas'],
    source: "pd.DataFrame({('a', 'x'): [1]}, index=pd.MultiIndex.from_tuples([('k', 1)], names=['i', None]))",
    results: [
      {
        types: ['text/html'],
        table: { columns: [{ name: 'a, x', type: 'integer', values: [1] }], rows: 1, index: { name: 'i, ', type: 'other', values: ["('k', 1)"] } },
      },
    ],
  },
  {
    name: 'a missing column',
    needs: ['pandas'],
    source: "df['nope']",
    error: {
      name: 'KeyError',
      value: "'nope'",
      line: 1,
      traceback: /^Traceback \(most recent call last\):\n {2}File "<code N>", line 1, in <module>\n {4}df\['nope'\]\n( +~+\^+\n)?KeyError: 'nope'\n$/,
    },
  },
  { name: 'an array', needs: ['numpy'], source: 'import numpy as np\nnp.arange(3)', results: [{ text: 'array([0, 1, 2])' }] },
  {
    name: 'a figure of plotly',
    needs: ['plotly'],
    source:
      "import plotly.graph_objects as go\nfigure = go.Figure(go.Scatter(x=[1, 2], y=[3, 4]), layout={'title': {'text': 'T'}, 'template': 'none'})\nfigure.show()\nfigure",
    results: [
      {
        isMain: false,
        text: /^Figure\(/,
        values: {
          'application/vnd.plotly.v1+json': {
            data: [{ type: 'scatter', x: [1, 2], y: [3, 4] }],
            layout: { title: { text: 'T' }, template: { data: { scatter: [{ type: 'scatter' }] } } },
          },
        },
      },
      { text: /^Figure\(/, types: ['application/vnd.plotly.v1+json'] },
    ],
  },
  {
    name: 'a picture of PIL',
    needs: ['PIL'],
    source: "from PIL import Image\nImage.linear_gradient('L')",
    results: [{ text: /^<PIL.Image.Image image mode=L size=256x256/, hasPng: true }],
  },
  { name: 'which it shows', needs: ['PIL'], source: "Image.linear_gradient('L').convert('CMYK').show()", results: [{ isMain: false, hasPng: true }] },
  {
    name: 'a DataFrame of polars',
    needs: ['polars'],
    source: [
      'import polars as pl, datetime',
      "frame = pl.DataFrame({'n': [1, None], 'f': [1.5, float('nan')], 's': ['x', None], 'b': [True, False], 'd': [datetime.date(2024, 1, 1)] * 2,",
      "  'u': [datetime.timedelta(days=1, seconds=90.5)] * 2, 'l': [[1], None]})",
      "frame.with_columns(pl.col('s').cast(pl.Categorical).alias('c'))",
    ].join('\n'),
    results: [
      {
        text: /^shape: \(2, 8\)/,
        patterns: { 'text/html': /<table/ },
        table: {
          columns: [
            { name: 'n', type: 'integer', values: [1, null] },
            { name: 'f', type: 'number', values: [1.5, null] },
            { name: 's', type: 'string', values: ['x', null] },
            { name: 'b', type: 'boolean', values: [true, false] },
            { name: 'd', type: 'datetime', values: ['2024-01-01', '2024-01-01'] },
            { name: 'u', type: 'duration', values: ['P1DT0H1M30.5S', 'P1DT0H1M30.5S'] },
            { name: 'l', type: 'other', values: ['[1]', null] },
            { name: 'c', type: 'category', values: ['x', null] },
          ],
          rows: 2,
        },
      },
    ],
  },
  {
    name: 'a Series of polars',
    needs: ['polars'],
    source: "frame['n']",
    results: [{ types: ['text/html'], table: { columns: [{ name: 'n', type: 'integer', values: [1, null] }], rows: 2 } }],
  },
  {
    name: 'a chart of altair',
    needs: ['altair'],
    source: "import altair\nchart = altair.Chart(altair.Data(values=[{'x': 1}])).mark_bar().encode(x='x:Q')\ndata = display(chart)\nchart.to_dict()['mark']",
    results: [
      { isMain: false, text: /^alt\.Chart\(/, types: ['application/vnd.vegalite.v6+json'] },
      { text: "{'type': 'bar'}", values: { 'application/json': { type: 'bar' } } },
    ],
  },
  {
    name: 'a formula of sympy',
    needs: ['sympy'],
    source: "import sympy\nsympy.Symbol('x') ** 2",
    results: [{ text: 'x**2', values: { 'text/latex': '$\\displaystyle x^{2}$' } }],
  },
]
