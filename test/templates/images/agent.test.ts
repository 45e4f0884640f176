/** An agent that works on pictures, as its users write it: a Dockerfile with Pillow, run with its input read-only, an output folder, little memory, half a processor and no network. */
import { chownSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { crc32, deflateSync, inflateSync } from 'node:zlib'
import { afterAll, describe, expect, test } from 'vitest'
import { createPlatform, templateBuilder } from '../../../src/compose.js'
import type { Recipe } from '../../../src/contract/templates.js'
import { Sandbox } from '../../../src/index.js'
import { baseEnv, baseLinks, basePackages, baseWithout } from '../../../src/templates/recipes/base.js'
import { noDockerEngine, startDockerEngine } from '../../docker-engine.js'
import { skipGroup } from '../../unless.js'
import { whyNotBuilt } from '../reachable.js'

/** Each driver that can be given a root of ours. */
const drivers = ['bwrap', 'oci:runc', 'oci:crun', 'docker']

const place = mkdtempSync(join(tmpdir(), 'gbx-agent-'))
const templateDir = join(place, 'store')
const builder = templateBuilder({ templateDir })
const noDocker = noDockerEngine()
const usualHost = process.env.DOCKER_HOST
/** Before anything asks for an engine. */
const engine = noDocker === undefined ? await startDockerEngine() : undefined
if (engine) process.env.DOCKER_HOST = `unix://${engine.address.path}`
const platform = createPlatform({ templateDir })
const why = (await whyNotBuilt(templateDir)) || (await whyNoRoot())
if (why) console.log(`no agent is built by these tests: ${why}`)

afterAll(async () => {
  await platform[Symbol.asyncDispose]()
  await engine?.[Symbol.asyncDispose]()
  if (usualHost === undefined) delete process.env.DOCKER_HOST
  else process.env.DOCKER_HOST = usualHost
  rmSync(place, { recursive: true, force: true })
})

async function whyNoRoot(): Promise<string | false> {
  const feature = (await platform.probe()).find(({ driver }) => driver === 'bwrap')?.features['root-overlay']
  return feature === undefined ? 'there is no bwrap' : feature.available ? false : feature.why
}

/** One that the cell's user may write to: nothing of root's is. */
function writableFolder(path: string): void {
  mkdirSync(path)
  if (process.getuid?.() === 0) chownSync(path, 1000, 1000)
}

const wanted = ['passwd', 'libpam0g', 'libpam-runtime', 'debconf']

/** What an image of Python brings: the interpreter, pip, useradd, and the libraries that wheels of Pillow link to. */
const base: Recipe = {
  name: 'python-pip',
  summary: 'Python with pip',
  packages: [...basePackages, 'passwd', 'python3', 'python3-pip', 'python3-pil'],
  without: [...baseWithout.filter((name) => !wanted.includes(name)), 'debconf', 'x11-common'],
  links: baseLinks,
  env: baseEnv,
  checks: [['python3', '-m', 'pip', '--version']],
  diskBytes: 800 * 2 ** 20,
}

/** Pillow as an index would hand it out: a wheel. There is no index on a machine without a network, so it is made of Debian's own files. */
const wheelMaker = `
import base64, glob, hashlib, os, zipfile
top = '/usr/lib/python3/dist-packages'
version = next(line for line in open(glob.glob(top + '/Pillow-*.egg-info/PKG-INFO')[0]) if line.startswith('Version:')).split()[1]
info = f'pillow-{version}.dist-info'
files = {f'{info}/METADATA': f'Metadata-Version: 2.1\\nName: pillow\\nVersion: {version}\\n'.encode(),
         f'{info}/WHEEL': b'Wheel-Version: 1.0\\nGenerator: test\\nRoot-Is-Purelib: false\\nTag: py3-none-any\\n'}
for folder, _, names in os.walk(top + '/PIL'):
    if '__pycache__' not in folder:
        files.update({os.path.relpath(os.path.join(folder, name), top): open(os.path.join(folder, name), 'rb').read() for name in names})
record = ''.join(f'{name},sha256={base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode().rstrip("=")},{len(data)}\\n' for name, data in files.items())
with zipfile.ZipFile(f'/mnt/wheels/pillow-{version}-py3-none-any.whl', 'w') as wheel:
    for name, data in files.items():
        wheel.writestr(name, data)
    wheel.writestr(f'{info}/RECORD', record + f'{info}/RECORD,,\\n')
`

const dockerfile = `# An agent that makes thumbnails.
FROM python-pip AS base
# The base has the libraries of Pillow; Pillow itself is ours to install.
RUN rm -rf /usr/lib/python3/dist-packages/PIL /usr/lib/python3/dist-packages/Pillow-*

FROM base AS wheels
COPY wheels/ /wheels/

FROM base
ENV PIP_BREAK_SYSTEM_PACKAGES=1 \\
    PYTHONUNBUFFERED=1
RUN useradd --create-home --uid 10001 agent
WORKDIR /app
COPY requirements.txt .
COPY --from=wheels /wheels /wheels
RUN pip install --no-cache-dir --no-index --find-links /wheels -r requirements.txt && rm -r /wheels
COPY agent.py .
USER agent
ENTRYPOINT ["python3", "/app/agent.py"]
CMD ["--width", "16"]
`

const agent = `
import argparse, os, pathlib
from PIL import Image, ImageOps

parser = argparse.ArgumentParser()
parser.add_argument('--width', type=int, required=True)
width = parser.parse_args().width
for path in sorted(pathlib.Path('/input').iterdir()):
    with Image.open(path) as picture:
        height = picture.height * width // picture.width
        thumbnail = ImageOps.mirror(picture.convert('RGB').resize((width, height)))
        thumbnail.save(f'/output/{path.stem}-small.png')
    print(path.name, thumbnail.size, 'uid', os.getuid())
`

/** Left half red, right half blue. */
function picture(width: number, height: number): Buffer {
  const row = Buffer.concat([Buffer.from([0]), ...Array.from({ length: width }, (_, x) => Buffer.from(x < width / 2 ? [255, 0, 0] : [0, 0, 255]))])
  const head = Buffer.alloc(13)
  head.writeUInt32BE(width, 0)
  head.writeUInt32BE(height, 4)
  head.set([8, 2, 0, 0, 0], 8)
  const pixels = deflateSync(Buffer.concat(Array.from({ length: height }, () => row)))
  const chunk = (type: string, content: Buffer): Buffer => {
    const body = Buffer.concat([Buffer.from(type), content])
    const ends = Buffer.alloc(8)
    ends.writeUInt32BE(content.length, 0)
    ends.writeUInt32BE(crc32(body), 4)
    return Buffer.concat([ends.subarray(0, 4), body, ends.subarray(4)])
  }
  return Buffer.concat([Buffer.from('89504e470d0a1a0a', 'hex'), chunk('IHDR', head), chunk('IDAT', pixels), chunk('IEND', Buffer.alloc(0))])
}

/** The size of a PNG, and the first and the last pixel of its first row, which no filter can have changed beyond recognition. */
function look(png: Buffer): { width: number; height: number; first: number[]; last: number[] } {
  expect(png.subarray(0, 8).toString('hex')).toBe('89504e470d0a1a0a')
  const pieces: Buffer[] = []
  for (let at = 8; at < png.length; at += png.readUInt32BE(at) + 12)
    if (png.toString('latin1', at + 4, at + 8) === 'IDAT') pieces.push(png.subarray(at + 8, at + 8 + png.readUInt32BE(at)))
  const [width, height] = [png.readUInt32BE(16), png.readUInt32BE(20)]
  const raw = inflateSync(Buffer.concat(pieces))
  const row = [...raw.subarray(1, 1 + width * 3)]
  // Of the filters that a first row can have only these two matter: none, and the difference to the pixel on the left.
  if (raw[0] === 1) for (let at = 3; at < row.length; at += 1) row[at] = ((row[at] ?? 0) + (row[at - 3] ?? 0)) & 255
  expect([0, 1, 2]).toContain(raw[0])
  return { width, height, first: row.slice(0, 3), last: row.slice(-3) }
}

describe('an agent that works on pictures', { timeout: 300_000 }, () => {
  skipGroup(why)

  test('is built by its Dockerfile', async () => {
    await builder.build(base)
    const folder = join(place, 'agent')
    mkdirSync(folder)
    writableFolder(join(folder, 'wheels'))
    await using maker = await Sandbox.create({
      template: 'python-pip',
      platform,
      mounts: [{ source: join(folder, 'wheels'), target: '/mnt/wheels', mode: 'rw' }],
    })
    expect(await maker.run(['python3', '-c', wheelMaker])).toMatchObject({ exitCode: 0, stderr: '' })
    writeFileSync(join(folder, 'Dockerfile'), dockerfile)
    writeFileSync(join(folder, 'agent.py'), agent)
    writeFileSync(join(folder, 'requirements.txt'), 'pillow\n')
    let said = ''
    const onEvent = (event: { readonly type: string; readonly text?: string }): void => void (event.type === 'output' && (said += event.text))
    const made = await builder.buildFolder(folder, { name: 'thumbnails', onEvent })
    expect(said).toMatch(/Successfully installed pillow-\d/)
    expect(made.image).toMatchObject({ user: 'agent', workdir: '/app', entrypoint: ['python3', '/app/agent.py'], cmd: ['--width', '16'] })
    expect(made.languages).toContainEqual({ name: 'python', version: expect.stringMatching(/^3\./) })
  })

  test.for(drivers)('makes its pictures in a sandbox of %s, within its limits', async (driver, { skip }) => {
    if (driver === 'docker' && noDocker !== undefined) skip(noDocker)
    const [obstacle] = (await platform.probe()).find((probe) => probe.driver === driver)?.obstacles ?? []
    if (obstacle) skip(obstacle.why)
    const input = join(place, `input-${driver}`)
    const output = join(place, `output-${driver}`)
    mkdirSync(input)
    writableFolder(output)
    writeFileSync(join(input, 'flag.png'), picture(64, 32))
    await using sandbox = await Sandbox.create({
      template: 'thumbnails',
      driver,
      platform,
      limits: { memory: '100m', cpus: 0.5 },
      mounts: [
        { source: input, target: '/input', mode: 'ro' },
        { source: output, target: '/output', mode: 'rw' },
      ],
    })
    const { entrypoint = [], cmd = [] } = builder.inspect('thumbnails').image ?? {}
    const ran = await sandbox.run([...entrypoint, ...cmd])
    expect([ran.stderr, ran.stdout, ran.exitCode]).toEqual(['', 'flag.png (16, 8) uid 1000\n', 0])
    // Mirrored: what was on the left is on the right.
    expect(look(readFileSync(join(output, 'flag-small.png')))).toEqual({ width: 16, height: 8, first: [0, 0, 255], last: [255, 0, 0] })

    const tries = [
      "open('/input/x', 'w')",
      "open('/app/agent.py', 'a')",
      "__import__('socket').create_connection(('1.1.1.1', 80), 2)",
      'b = bytearray(200 << 20)',
    ]
    for (const attempt of tries) expect((await sandbox.run(['python3', '-c', attempt])).exitCode, attempt).not.toBe(0)
    expect(readdirSync(input)).toEqual(['flag.png'])
    const receipt = await sandbox.receipt()
    expect([receipt.template, receipt.imageDigest]).toEqual(['thumbnails', builder.inspect('thumbnails').image?.digest])
    const told = Object.fromEntries(receipt.controls.map((control) => [control.control, control]))
    expect([told['limit.memory'], told['limit.cpus']]).toMatchObject([
      { enforced: 104_857_600, verdict: 'proven' },
      { enforced: 0.5, verdict: 'proven' },
    ])
  })
})
