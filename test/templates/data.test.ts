import { afterAll, describe, expect, test } from 'vitest'
import { createPlatform } from '../../src/compose.js'
import { Sandbox } from '../../src/index.js'
import { skipGroup } from '../unless.js'
import { buildTimeoutMs, dataTemplate } from './data.js'

const data = await dataTemplate()
if (data.why !== undefined) console.log(data.why)
const platform = createPlatform()
const timeout = 300_000

afterAll(() => platform[Symbol.asyncDispose]())

const isRoot = process.getuid?.() === 0

describe('the template data', { timeout: Math.max(timeout, buildTimeoutMs) }, () => {
  skipGroup(data.why ?? false)

  test('has what it promises, and draws a picture', async () => {
    const sandbox = await Sandbox.create({ template: 'data', limits: { time: '4m' }, platform })
    const program = `
import io, numpy, pandas, matplotlib, plotly, sklearn, PIL.Image, IPython, scipy
import matplotlib.pyplot as plt
pandas.DataFrame({"a": numpy.arange(9)}).plot()
out = io.BytesIO(); plt.savefig(out, format="png"); out.seek(0)
print(PIL.Image.open(out).size, matplotlib.get_backend().lower())
`
    expect(await sandbox.run(['python3', '-W', 'error::UserWarning', '-c', program])).toMatchObject({ exitCode: 0, stdout: '(640, 480) agg\n', stderr: '' })
    await sandbox.close()
  })

  test('has bytecode for all that is imported, which nothing need write', async () => {
    const sandbox = await Sandbox.create({ template: 'data', limits: { time: '4m' }, platform })
    const program =
      'import pandas, sys, os; print(sum(1 for m in sys.modules.values() if (getattr(m, "__cached__", None) or "").startswith("/usr/lib") and not os.path.islink(m.__file__) and not os.path.exists(m.__cached__)))'
    expect((await sandbox.run(['python3', '-c', program])).stdout).toBe('0\n')
    await sandbox.close()
  })

  test('multiplies matrices with the fast library', async () => {
    const sandbox = await Sandbox.create({ template: 'data', limits: { time: '4m' }, platform })
    const program = 'import numpy, threadpoolctl; print({each["internal_api"] for each in threadpoolctl.threadpool_info()})'
    expect((await sandbox.run(['python3', '-c', program])).stdout).toBe("{'openblas'}\n")
    await sandbox.close()
  })

  test('a list of commands holds in it', async () => {
    const sandbox = await Sandbox.create({ template: 'data', commands: ['python3'], limits: { time: '4m' }, platform })
    expect([(await sandbox.run(['python3', '-c', 'print(6 * 7)'])).stdout, (await sandbox.run(['bash', '-c', 'true'])).outcome.kind]).toEqual([
      '42\n',
      'not-started',
    ])
    await sandbox.close()
  })

  test('with a root that can be written over, what is written is the sandbox’s alone', async (context) => {
    if (!isRoot) context.skip('only root has such a root')
    const sandbox = await Sandbox.create({ template: 'data', root: 'overlay', user: 'root', limits: { time: '4m' }, platform })
    const changed = await sandbox.run('echo "x = 7" > /usr/lib/python3/dist-packages/own.py && rm /usr/bin/awk && python3 -c "import own, numpy; print(own.x)"')
    expect(changed).toMatchObject({ exitCode: 0, stdout: '7\n' })
    expect(
      (await sandbox.diff()).filter(({ path }) => path.startsWith('/usr/bin') || path.endsWith('own.py')).map(({ type, path }) => `${type} ${path}`),
    ).toEqual(['removed /usr/bin/awk', 'added /usr/lib/python3/dist-packages/own.py'])
    const other = await Sandbox.create({ template: 'data', platform })
    expect((await other.run('ls /usr/bin/awk /usr/lib/python3/dist-packages/own.py')).stdout).toBe('/usr/bin/awk\n')
    await Promise.all([sandbox.close(), other.close()])
  })

  test('a snapshot is of it, by its id', async () => {
    const sandbox = await Sandbox.create({ template: 'data', platform })
    await sandbox.run('echo kept > a')
    const snapshot = await sandbox.snapshot()
    const again = await Sandbox.create({ from: snapshot.id, platform })
    expect([snapshot.template, snapshot.templateId, (await again.run('cat a')).stdout]).toEqual(['data', (await sandbox.info()).templateId, 'kept\n'])
    await Promise.all([sandbox.close(), again.close()])
  })
})

test('the machine’s own templates have no id', async () => {
  const sandbox = await Sandbox.create({ platform })
  expect([(await sandbox.info()).templateId, (await sandbox.receipt()).templateId]).toEqual([undefined, undefined])
  await sandbox.close()
})
