import type { Recipe } from '../../contract/templates.js'
import { baseChecks, baseEnv, baseLinks, basePackages, baseWithout } from './base.js'

/** What a picture needs from the first import to its bytes. */
const draws = `
import io
import matplotlib.pyplot as plt, numpy as np, pandas as pd
from sklearn.linear_model import LinearRegression
x = np.arange(10.0).reshape(-1, 1)
assert abs(LinearRegression().fit(x, 2 * x[:, 0] + 1).coef_[0] - 2) < 1e-9
pd.DataFrame({"x": x[:, 0]}).plot(title="±é")
out = io.BytesIO()
plt.savefig(out, format="png")
assert out.getvalue()[:4] == b"\\x89PNG"
`

const tells = `
import plotly.graph_objects as go
assert '"scatter"' in go.Figure(go.Scatter(x=[1], y=[2])).to_json()
import PIL.Image, IPython, scipy.optimize, sympy, lxml.etree
`

export const data: Recipe = {
  name: 'data',
  summary: 'Python with numpy, pandas, matplotlib, plotly and scikit-learn',
  packages: [
    ...basePackages,
    'libopenblas0-pthread',
    'python-is-python3',
    'python3',
    'python3-ipython',
    'python3-matplotlib',
    'python3-numpy',
    'python3-pandas',
    'python3-pil',
    'python3-plotly',
    'python3-sklearn',
    'python3-sympy',
  ],
  // A compiler that only builds scipy, windows that nobody sees, and pages that nobody serves.
  without: [
    ...baseWithout,
    'blt',
    'libjs-jquery',
    'libjs-jquery-ui',
    'libjs-sphinxdoc',
    'libjs-underscore',
    'python3-lz4',
    'python3-pil.imagetk',
    'python3-pythran',
    'python3-tk',
    'tk8.6-blt2.5',
    'unicode-data',
    'x11-common',
  ],
  links: [
    ...baseLinks,
    { path: 'usr/lib/@triplet@/libblas.so.3', target: 'openblas-pthread/libblas.so.3' },
    { path: 'usr/lib/@triplet@/liblapack.so.3', target: 'openblas-pthread/liblapack.so.3' },
    { path: 'usr/lib/@triplet@/libopenblas.so.0', target: 'openblas-pthread/libopenblas.so.0' },
  ],
  env: {
    ...baseEnv,
    // There is no screen.
    MPLBACKEND: 'Agg',
    // A writable place whoever runs, also where the home is a mount.
    MPLCONFIGDIR: '/tmp/.matplotlib',
    // A cell has a part of one processor unless more is asked for; threads would only wait for each other.
    OPENBLAS_NUM_THREADS: '1',
  },
  checks: [
    ...baseChecks,
    ['python3', '-c', 'import numpy, pandas, matplotlib, plotly, sklearn'],
    ['python3', '-W', 'error::UserWarning', '-c', draws],
    ['python3', '-c', tells],
  ],
  diskBytes: 1400 * 2 ** 20,
}
