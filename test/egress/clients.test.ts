import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { Sandbox } from '../../src/sandbox/index.js'
import { type NetworkGround, openGround } from '../engine/network-ground.js'
import { debianClients, installMissing, isThere } from './clients-packages.js'
import { openSite, type Site } from './clients-site.js'

let ground: NetworkGround
let site: Site
let sandbox: Sandbox

beforeAll(async () => {
  installMissing(debianClients)
  // Suggested, not demanded: a user who cannot have them gets what there is.
  ground = await openGround({ policy: { defaults: { limits: { cpus: 2, memory: '1g' } } } })
  site = await openSite(ground.authority)
  if (ground.without !== undefined) return
  sandbox = await Sandbox.create({
    platform: ground.platform,
    network: { allow: [`allowed.example.com:${site.port}`] },
  })
}, 300_000)
afterAll(async () => {
  await ground[Symbol.asyncDispose]()
  await site[Symbol.asyncDispose]()
})
beforeEach(({ skip }) => {
  if (ground.without !== undefined) skip(ground.without)
})

interface Client {
  readonly name: string
  /** Which programs it needs; a machine without them is told of. */
  readonly needs: string
  /** For a shell; `URL` is where to go, `HOST` and `PORT` its parts. */
  readonly script: string
  readonly prints: string | RegExp
  /** Which of Debian's packages. */
  readonly packages?: readonly (keyof typeof debianClients)[]
  /** It knows no proxy. */
  readonly direct?: true
}

const python = (program: string): string => `python3 - <<'END'\nimport os\nurl = os.environ['URL']\n${program}\nEND`
const websocket = `const socket = new WebSocket(process.env.URL.replace('https', 'wss') + '/echo')
socket.onopen = () => socket.send('over and over')
socket.onmessage = ({ data }) => { console.log(data); socket.close() }
socket.onerror = ({ message }) => { console.log('error', message); process.exit(1) }`

const systemPython = (program: string): string => python(program).replace('python3', '/usr/bin/python3')
const wsOfNpm = (options: string): string => `NODE_PATH=/usr/share/nodejs node - <<'END'
const WebSocket = require('ws')
const socket = new WebSocket(process.env.URL.replace('https', 'wss') + '/echo', ${options || '{}'})
socket.on('open', () => socket.send('over and over'))
socket.on('message', (data) => { console.log(String(data)); socket.close() })
socket.on('error', (error) => { console.log('error', error.message); process.exit(1) })
END`

/** Java has a store of its own for whom it trusts, and reads no variable that names another. */
const java = `import java.io.*; import java.net.*; import java.security.*; import java.security.cert.*; import javax.net.ssl.*;
public class Get { public static void main(String[] none) throws Exception {
  KeyStore store = KeyStore.getInstance(KeyStore.getDefaultType()); store.load(null, null);
  InputStream trusted = new FileInputStream(System.getenv("SSL_CERT_FILE")); int count = 0;
  for (var each : CertificateFactory.getInstance("X.509").generateCertificates(trusted)) store.setCertificateEntry("c" + count++, each);
  TrustManagerFactory trust = TrustManagerFactory.getInstance("PKIX"); trust.init(store);
  SSLContext context = SSLContext.getInstance("TLS"); context.init(null, trust.getTrustManagers(), null);
  HttpsURLConnection asked = (HttpsURLConnection) new URL(System.getenv("URL") + "/hello.txt").openConnection();
  asked.setSSLSocketFactory(context.getSocketFactory()); System.out.print(new String(asked.getInputStream().readAllBytes())); } }`
const getByJava = (options: string): string => `cat > Get.java <<'END'\n${java}\nEND\njava -Xmx128m ${options} Get.java`

const clients: readonly Client[] = [
  {
    name: 'apt',
    needs: 'apt-get',
    script:
      'rm -f got && /usr/lib/apt/apt-helper -o Acquire::https::CAInfo="$SSL_CERT_FILE" -o Acquire::Retries=0 download-file "$URL/hello.txt" got >&2 && cat got',
    prints: 'hello from outside\n',
  },
  {
    name: 'apt without a proxy',
    needs: 'apt-get',
    script:
      'rm -f got && env -u https_proxy -u HTTPS_PROXY -u all_proxy -u ALL_PROXY /usr/lib/apt/apt-helper -o Acquire::https::CAInfo="$SSL_CERT_FILE" -o Acquire::Retries=0 download-file "$URL/hello.txt" got >&2 && cat got',
    prints: 'hello from outside\n',
    direct: true,
  },
  { name: 'Java', needs: 'javac', script: getByJava(''), prints: 'hello from outside\n', direct: true },
  { name: 'Java told of the proxy', needs: 'javac', script: getByJava('-Dhttps.proxyHost=127.0.0.1 -Dhttps.proxyPort=3128'), prints: 'hello from outside\n' },
  {
    name: "Node's own resolver",
    needs: 'node',
    script: `node -e "require('dns').promises.resolve4(process.env.HOST).then(([address]) => console.log(address))"`,
    prints: /^198\.1[89]\.\d+\.\d+\n$/,
    direct: true,
  },
  { name: 'curl', needs: 'curl', script: 'curl -sS --fail "$URL/hello.txt"', prints: 'hello from outside\n' },
  { name: 'curl over SOCKS', needs: 'curl', script: 'curl -sS --fail --proxy socks5h://127.0.0.1:3128 "$URL/hello.txt"', prints: 'hello from outside\n' },
  { name: 'wget', needs: 'wget', script: 'wget -q -O - --ca-certificate="$SSL_CERT_FILE" --tries=1 "$URL/hello.txt"', prints: 'hello from outside\n' },
  {
    name: 'openssl s_client',
    needs: 'openssl',
    script: `printf 'GET /hello.txt HTTP/1.0\\r\\nHost: %s\\r\\n\\r\\n' "$HOST" |
      openssl s_client -quiet -verify_quiet -verify_return_error -ign_eof -CAfile "$SSL_CERT_FILE" -proxy "\${HTTP_PROXY#http://}" -connect "$HOST:$PORT" -servername "$HOST"`,
    prints: /hello from outside/,
  },
  { name: 'git clone', needs: 'git', script: 'rm -rf c && git clone -q "$URL/repository.git" c && cat c/README', prints: 'a repository\n' },
  {
    name: 'pip install',
    needs: 'pip3',
    script:
      'rm -rf p && python3 -m pip install -q --no-cache-dir --disable-pip-version-check --retries 0 --target p --index-url "$URL/simple" tiny && PYTHONPATH=p python3 -c "import tiny; print(tiny.value)"',
    prints: 'tiny of pip\n',
  },
  {
    name: 'npm install',
    needs: 'npm',
    script: 'rm -rf n && mkdir n && cd n && npm install --silent --no-audit --no-fund --fetch-retries=0 --registry "$URL/" tiny && node -p "require(\'tiny\')"',
    prints: 'tiny of npm\n',
  },
  {
    name: 'urllib',
    needs: 'python3',
    script: python("import urllib.request\nprint(urllib.request.urlopen(url + '/hello.txt').read().decode(), end='')"),
    prints: 'hello from outside\n',
  },
  {
    name: 'requests',
    needs: 'python3',
    script: python(`try:
    import requests
except ImportError:
    from pip._vendor import requests
print(requests.get(url + '/hello.txt').text, end='')`),
    prints: 'hello from outside\n',
  },
  {
    name: 'http.client, which knows no proxy',
    needs: 'python3',
    script: python(`import http.client, ssl
connection = http.client.HTTPSConnection(os.environ['HOST'], int(os.environ['PORT']), timeout=10)
connection.request('GET', '/hello.txt')
print(connection.getresponse().read().decode(), end='')`),
    prints: 'hello from outside\n',
    direct: true,
  },
  {
    name: "Node's fetch",
    needs: 'node',
    script: `node -e 'fetch(process.env.URL + "/hello.txt").then((answer) => answer.text()).then((text) => process.stdout.write(text), (error) => { console.error(error); process.exit(1) })'`,
    prints: 'hello from outside\n',
    direct: true,
  },
  { name: "Node's WebSocket", needs: 'node', script: `node --experimental-websocket --no-warnings -e "$PROGRAM"`, prints: 'over and over\n', direct: true },
  {
    name: 'httpx, by the proxy that its environment names',
    needs: 'python3',
    packages: ['python3-httpx'],
    script: systemPython("import httpx\nprint(httpx.get(url + '/hello.txt').text, end='')"),
    prints: 'hello from outside\n',
  },
  {
    name: 'httpx told of no proxy',
    needs: 'python3',
    packages: ['python3-httpx'],
    script: systemPython(`import asyncio, httpx, ssl
async def main():
    async with httpx.AsyncClient(trust_env=False, verify=ssl.create_default_context()) as client:
        print((await client.get(url + '/hello.txt')).text, end='')
asyncio.run(main())`),
    prints: 'hello from outside\n',
    direct: true,
  },
  {
    name: 'websockets of Python',
    needs: 'python3',
    packages: ['python3-websockets'],
    script: systemPython(`import asyncio, websockets
async def main():
    async with websockets.connect(url.replace('https', 'wss') + '/echo') as socket:
        await socket.send('over and over')
        print(await socket.recv())
asyncio.run(main())`),
    prints: 'over and over\n',
    direct: true,
  },
  { name: 'ws of npm', needs: 'node', packages: ['node-ws'], script: wsOfNpm(''), prints: 'over and over\n', direct: true },
  {
    name: 'ws of npm with an agent for the proxy',
    needs: 'node',
    packages: ['node-ws', 'node-https-proxy-agent'],
    script: wsOfNpm("{ agent: new (require('https-proxy-agent').HttpsProxyAgent ?? require('https-proxy-agent'))(process.env.HTTPS_PROXY) }"),
    prints: 'over and over\n',
  },
  {
    name: 'a resolver that reads /etc/resolv.conf',
    needs: 'python3',
    packages: ['python3-dnspython'],
    script: systemPython(
      "import dns.resolver\nprint(dns.resolver.resolve(os.environ['HOST'], 'A', tcp=True)[0], dns.resolver.resolve(os.environ['HOST'], 'A')[0])",
    ),
    prints: /^(198\.1[89]\.\d+\.\d+) \1\n$/,
    direct: true,
  },
]

describe.each(clients)('$name', ({ needs, packages = [], script, prints, direct }) => {
  const go = (host: string) => {
    const env = { URL: `https://${host}:${site.port}`, HOST: host, PORT: String(site.port), PROGRAM: websocket }
    return sandbox.run(script, { env })
  }

  beforeEach(({ skip }) => {
    if (!isThere(`command -v ${needs}`)) skip(`there is no ${needs} on this machine`)
    for (const name of packages) if (!isThere(debianClients[name])) skip(`apt-get install ${name}: could not be done here`)
    if (direct && ground.withoutDirect !== undefined) skip(ground.withoutDirect)
  })

  test('reaches what is allowed', async () => {
    const result = await go('allowed.example.com')
    expect(result, result.stderr).toMatchObject({
      outcome: { kind: 'exited', code: 0 },
      stdout: typeof prints === 'string' ? prints : (expect.stringMatching(prints) as string),
    })
    expect(site.visits.at(-1)?.host).toContain('allowed.example.com')
  })

  test('is refused what is not, and nothing of it arrives', async () => {
    const before = site.connections()
    const result = await go('forbidden.example.com')
    expect(result.outcome).not.toEqual({ kind: 'exited', code: 0 })
    expect(site.connections()).toBe(before)
    expect(site.greeted).not.toContain('forbidden.example.com')
    expect(ground.resolved).not.toContain('forbidden.example.com')
  })
})

test('a redirect to what is not allowed leads nowhere', async () => {
  const before = site.visits.length
  const away = `https://forbidden.example.com:${site.port}/hello.txt`
  const result = await sandbox.run(['curl', '-sS', '-L', `https://allowed.example.com:${site.port}/redirect?to=${encodeURIComponent(away)}`])
  expect(result.outcome).not.toEqual({ kind: 'exited', code: 0 })
  expect(site.visits.slice(before).map(({ host }) => host)).toEqual([`allowed.example.com:${site.port}`])
})

test('another process of the cell that speaks to the door, with other variables or none, is judged the same', async () => {
  const before = site.connections()
  const tries = [
    `HTTPS_PROXY= https_proxy= curl -sSk --max-time 10 https://forbidden.example.com:${site.port}/`,
    `printf 'CONNECT forbidden.example.com:${site.port} HTTP/1.1\\r\\nHost: allowed.example.com:${site.port}\\r\\n\\r\\n' | timeout 5 bash -c 'exec 3<>/dev/tcp/127.0.0.1/3128; cat >&3; head -c 12 <&3'`,
    `curl -sSk --max-time 10 --connect-to forbidden.example.com:${site.port}:allowed.example.com:${site.port} https://forbidden.example.com:${site.port}/`,
  ]
  for (const each of tries) await sandbox.run(each)
  expect(site.greeted).not.toContain('forbidden.example.com')
  expect(site.visits.some(({ host }) => host.startsWith('forbidden'))).toBe(false)
  // The last begins TLS for another name than it asked the door for: the server is dialled at most, and told nothing.
  expect(site.connections() - before).toBeLessThanOrEqual(1)
})
