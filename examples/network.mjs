// A program that may reach one service; everything else is refused, and all of it is written down.
import { createServer } from 'node:http'
import { createPlatform, Sandbox } from 'glovebox'

// Something to reach: on this machine, at an address that only an operator's policy lets a sandbox have.
const service = createServer((_request, response) => response.end('twelve degrees\n'))
await new Promise((resolve) => service.listen(0, '127.0.0.2', resolve))
const weather = `127.0.0.2:${service.address().port}`

const platform = createPlatform({ policy: { name: 'site', ceiling: { network: { private: ['127.0.0.2/32'] } } } })
const sandbox = await Sandbox.create({
  platform,
  network: { allow: [weather] },
  onRequest: ({ host }) => {
    console.log(`asked about ${host}`)
    return 'deny'
  },
})
try {
  console.log((await sandbox.run(['curl', '-sS', `http://${weather}/today`])).stdout.trim())
  console.log((await sandbox.run(['curl', '-sS', '-o', '/dev/null', '-w', '%{http_code}', 'http://example.org/'])).stdout)
  const { byVerdict, latest } = await sandbox.network.summary()
  console.log(
    byVerdict,
    latest.map(({ host, verdict }) => `${host} ${verdict}`),
  )
} finally {
  await sandbox.close()
  await platform[Symbol.asyncDispose]()
  service.close()
}
