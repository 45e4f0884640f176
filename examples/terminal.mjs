// A shell in a terminal of its own: typed into, resized, and looked at again by someone who came later.
import { Sandbox } from 'glovebox'

const sandbox = await Sandbox.create()
try {
  const terminal = await sandbox.terminal({ cols: 100, rows: 30, tag: 'shell' })
  await terminal.write('stty size; cat\r')
  await terminal.resize({ cols: 132, rows: 43 })
  await terminal.write('\x03') // Ctrl-C ends cat, not the shell
  await terminal.write('stty size; exit 3\r')
  for await (const bytes of terminal.output) process.stdout.write(bytes)
  console.log((await terminal.wait()).outcome)

  const again = await sandbox.attach('shell', { replay: true })
  console.log(`it showed ${(await new Response(again.stdout).text()).length} characters`)
} finally {
  await sandbox.close()
}
