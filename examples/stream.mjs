import { Sandbox } from 'glovebox'

const sandbox = await Sandbox.create()
try {
  for await (const event of sandbox.run('for i in 1 2 3; do echo $i; sleep 0.1; done; cat /etc/shadow')) {
    if (event.type === 'exit') console.log(event.outcome)
    else process[event.type].write(event.bytes)
  }
} finally {
  await sandbox.close()
}
