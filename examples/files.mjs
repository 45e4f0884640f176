// Files go in, a program works on them, and only what it made comes out.
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Sandbox } from 'glovebox'

const out = await mkdtemp(join(tmpdir(), 'files-'))
const sandbox = await Sandbox.create()
try {
  await sandbox.files.writeMany({ 'in/a.csv': 'x,y\n1,2\n', 'in/b.csv': 'x,y\n3,4\n' })
  await sandbox.run('mkdir out && cat in/*.csv | grep -v x > out/all.csv && ln -s /etc/passwd out/link')
  for await (const { path, size } of sandbox.files.walk('out')) console.log(path, size)
  const { entries, skipped } = await sandbox.files.download('out', join(out, 'result'))
  console.log(entries, 'entries;', skipped.map(({ path, why }) => `${path} ${why}`).join('; '))
  console.log(await readFile(join(out, 'result/all.csv'), 'utf8'))
  await sandbox.files.read('missing.csv').catch((error) => console.log(error.code, '-', error.message))
} finally {
  await sandbox.close()
  await rm(out, { recursive: true })
}
