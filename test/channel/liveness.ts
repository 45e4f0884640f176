/** Leaves a warden open: this process must end by itself when it waits for nothing, and not before. */
import { openWarden } from './native-warden.js'

const [path, way] = process.argv.slice(2) as [string, 'idle' | 'running' | 'killing' | 'ready']
const native = await openWarden(path)
if (way === 'idle') {
  const done = await native.start(['true'])
  await done.exited
  process.stdout.write('idle')
} else if (way === 'ready') {
  const { argv: _, env, cwd, ...request } = native.request(['true'])
  const letGo = native.warden.hold()
  const ready = await native.warden.prepare(request, { atGate: () => Promise.resolve() })
  letGo()
  process.stdout.write(ready?.isWaiting ? 'ready ' : 'gone ')
  const result = await ready?.launch({ argv: ['sh', '-c', 'sleep 0.2; exit 6'], env, cwd })
  if (result?.started) void result.process.exited.then(({ code }) => process.stdout.write(`exited ${code}`))
  // Nobody holds on to this one.
  void native.warden.prepare(request, { atGate: () => new Promise(() => {}) })
} else if (way === 'running') {
  const run = await native.start(['sh', '-c', 'sleep 0.3; exit 5'])
  void run.exited.then(({ code }) => process.stdout.write(`exited ${code}`))
} else {
  const run = await native.start(['sleep', '100'])
  run.discardOutput()
  void run.kill().then(() => process.stdout.write('gone'))
}
