// A change that somebody proposes is tried in a fork first, and only taken over when its tests pass.
import { Sandbox } from 'glovebox'

const project = {
  'sums.py': 'def add(a, b):\n    return a + b\n',
  'test_sums.py': 'import unittest, sums\nclass T(unittest.TestCase):\n  def test(self): self.assertEqual(sums.add(2, 3), 5)\n',
}
const proposals = { faster: 'def add(a, b):\n    return a | b\n', simpler: 'def add(*numbers):\n    return sum(numbers)\n' }

const sandbox = await Sandbox.create({ lifetime: '2m' })
try {
  await sandbox.files.writeMany(project)
  for (const [name, text] of Object.entries(proposals)) {
    const [fork] = await sandbox.fork()
    try {
      await fork.files.write('sums.py', text)
      const before = await sandbox.snapshot()
      const changes = await fork.diff({ since: before.id })
      await Sandbox.snapshots().remove(before.id)
      const tests = await fork.run(['python3', '-B', '-m', 'unittest', '-q'])
      console.log(`${name}: ${changes.map(({ type, path }) => `${type} ${path}`).join(', ')}; tests ${tests.exitCode === 0 ? 'pass' : 'fail'}`)
      if (tests.exitCode === 0) await sandbox.files.write('sums.py', await fork.files.readBytes('sums.py'))
    } finally {
      await fork.close()
    }
  }
  console.log((await sandbox.files.read('sums.py')).trim())
} finally {
  await sandbox.close()
}
