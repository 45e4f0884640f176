// A server that an agent wrote, running in a sandbox, seen through a preview on this machine.
import { Sandbox } from 'glovebox'

const page = `
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
class Page(BaseHTTPRequestHandler):
    def do_GET(self):
        body = f'you asked for {self.path}'.encode()
        self.send_response(200)
        self.send_header('content-length', str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *_): pass
ThreadingHTTPServer(('127.0.0.1', 3000), Page).serve_forever()
`

const sandbox = await Sandbox.create({ lifetime: '10m', idle: '2m' })
try {
  sandbox.on('closed', ({ reason }) => console.log(reason.replace(sandbox.id, '…')))
  await sandbox.spawn(['python3', '-c', page], { tag: 'dev' })

  const url = await sandbox.url(3000) // waits until it listens
  console.log(await (await fetch(`${url}/hello`)).text())
  console.log((await sandbox.url(3000)) === url ? 'the same address again' : 'another address')

  // Nothing can be reached on a port that nothing serves.
  console.log(await sandbox.waitForPort(4000, { timeout: '200ms' }).catch((error) => error.code))
} finally {
  await sandbox.close()
}
// The preview went with it.
