import { spawnSync } from 'node:child_process'
import { describe, expect, test } from 'vitest'
import { skipGroup } from '../../unless.js'
import { Kernel, python } from './kernel.js'

// A folder with IPython in it may be given where the interpreter has none of its own.
const env = { PATH: '/usr/bin:/bin', HOME: '/nonexistent', LANG: 'C.UTF-8', PYTHONPATH: process.env['GLOVEBOX_TEST_PYTHONPATH'] ?? '' }
const isPresent = spawnSync(python, ['-c', 'import IPython'], { env }).status === 0

describe('with IPython', { timeout: 120_000 }, () => {
  skipGroup(!isPresent && 'IPython is not installed')

  test('magics, commands and questions work, and values are shown once', async () => {
    await using kernel = await Kernel.start({ env })
    const time = await kernel.execute('x = 5\n%time x + 1')
    expect(time).toMatchObject({ status: 'ok', results: [{ isMain: true, data: { 'text/plain': '6' } }] })
    expect(time.stdout).toMatch(/^CPU times: [^]*Wall time: /)
    expect(await kernel.execute('print(1)\n!echo 2\nprint(3)')).toMatchObject({ status: 'ok', stdout: '1\n2\n3\n' })
    expect(await kernel.execute('%%bash\necho out\necho err >&2')).toMatchObject({ status: 'ok', stdout: 'out\n', stderr: 'err\n' })
    expect((await kernel.execute('lines = !printf "a\\nb\\n"\nlist(lines)')).results[0]?.data).toMatchObject({ 'application/json': ['a', 'b'] })
    expect((await kernel.execute('len?')).stdout).toMatch(/Return the number of items in a container/)
    expect((await kernel.execute('%nosuch')).error).toMatchObject({ name: 'UsageError', line: 1 })
    expect((await kernel.execute('x')).results.map((result) => result.data)).toEqual([{ 'text/plain': '5' }])
    expect((await kernel.execute('x =')).error).toMatchObject({ name: 'SyntaxError', line: 1 })
  })

  test('its display and its objects come as results, with and without its shell', async () => {
    await using kernel = await Kernel.start({ env })
    for (const begin of ['', '%time 1\n']) {
      const done = await kernel.execute(`${begin}from IPython.display import HTML, Markdown, display\ndisplay(HTML('<b>'))\nMarkdown('*a*')`)
      expect(done.results.map(({ isMain, data }) => ({ isMain, data }))).toEqual([
        { isMain: false, data: { 'text/plain': '<IPython.core.display.HTML object>', 'text/html': '<b>' } },
        { isMain: true, data: { 'text/plain': '<IPython.core.display.Markdown object>', 'text/markdown': '*a*' } },
      ])
    }
  })
})
