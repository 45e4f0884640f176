// A shell in a terminal of its own: typed into, resized, and looked at again by someone who came later.
import { Sandbox } from 'glovebox'

const sandbox = await Sandbox.create()
try {
  const terminal = await sandbox.terminal({ cols: 100, rows: 30, tag: 'shell' })
  const output = terminal.output[Symbol.asyncIterator]()
  /** Like a person, who types on when the screen shows what was waited for. */
  const shows = async (pattern) => {
    for (let screen = ''; !pattern.test(screen); ) {
      const { value, done } = await output.next()
      if (done) throw new Error(`the terminal ended and never showed ${pattern}`)
      process.stdout.write(value)
      screen += Buffer.from(value).toString()
    }
  }

  await shows(/[$#] $/)
  await terminal.write('stty size; cat\r')
  await shows(/30 100\r\n/)
  await terminal.write('said by cat\r')
  await shows(/said by cat\r\nsaid by cat\r\n/)
  await terminal.resize({ cols: 132, rows: 43 })
  await terminal.write('\x03') // Ctrl-C ends cat, not the shell
  await shows(/[$#] $/)
  await terminal.write('stty size; exit 3\r')
  await shows(/43 132\r\n/)
  console.log((await terminal.wait()).outcome)

  const again = await sandbox.attach('shell', { replay: true })
  console.log(`it showed ${(await new Response(again.stdout).text()).length} characters`)
} finally {
  await sandbox.close()
}
