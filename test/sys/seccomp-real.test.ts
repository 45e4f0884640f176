import { execFileSync } from 'node:child_process'
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createSeccompCompiler } from '../../src/sys/seccomp.js'
import { testUnless } from '../unless.js'

const source = fileURLToPath(new URL('./programs/under-filter.c', import.meta.url))
const profile = JSON.parse(readFileSync(new URL('../../src/sys/profiles/default.json', import.meta.url), 'utf8')) as {
  syscalls: { names: string[]; action: string; errnoRet?: number; args?: object[] }[]
}
const refused = profile.syscalls.filter((rule) => rule.errnoRet === 1 && !rule.args).flatMap((rule) => rule.names)

let place: string
let program: string
let filter: string

beforeAll(async () => {
  place = mkdtempSync(join(tmpdir(), 'seccomp-real-'))
  chmodSync(place, 0o755)
  program = join(place, 'under-filter')
  filter = join(place, 'filter')
  execFileSync('gcc', ['-std=gnu11', '-O1', '-o', program, source, '-lseccomp'])
  writeFileSync(filter, await createSeccompCompiler({ cacheDir: place }).compileDefault(), { mode: 0o644 })
  mkdirSync(join(place, 'home'))
  chmodSync(join(place, 'home'), 0o777)
})

afterAll(() => rmSync(place, { recursive: true, force: true }))

/** The verdicts on calls, without those that the architecture or the C library's tables do not have. */
function attempt(how: string, calls: readonly string[], using = filter): Record<string, string> {
  const printed = execFileSync(program, [using, how, ...calls], { encoding: 'utf8' })
  const verdicts = printed
    .trim()
    .split('\n')
    .map((line) => line.split(' ') as [string, string])
  return Object.fromEntries(verdicts.filter(([, verdict]) => verdict !== 'unknown'))
}

function run(argv: readonly string[]): string {
  const home = join(place, 'home')
  const env = { PATH: '/usr/local/bin:/usr/bin:/bin', HOME: home, TMPDIR: home, LANG: 'C.UTF-8' }
  return execFileSync(program, [filter, 'exec', ...argv], { cwd: home, env, encoding: 'utf8', timeout: 60_000, stdio: ['ignore', 'pipe', 'pipe'] })
}

const python = (code: string): string => run(['/usr/bin/python3', '-c', code])

describe('under the default filter', () => {
  it('every call on the list of refusals answers EPERM', () => {
    const verdicts = attempt('try', refused)
    expect(Object.keys(verdicts).length).toBeGreaterThan(55)
    expect(Object.entries(verdicts).filter(([, verdict]) => verdict !== 'errno:1')).toEqual([])
  })

  it('the same attempts without the filter are answered otherwise, so the filter is what refuses', () => {
    const harmless = ['unshare', 'setns', 'kcmp', 'process_vm_readv', 'keyctl', 'io_uring_setup', 'io_setup', 'name_to_handle_at', 'mbind', 'pidfd_getfd']
    const verdicts = attempt('try', harmless, '-')
    expect(Object.entries(verdicts).filter(([, verdict]) => verdict === 'errno:1')).toEqual([])
  })

  it('clone3 and numbers nobody has yet answer ENOSYS', () => {
    expect(attempt('try', ['clone3', '470', '471', '500', '1000'])).toEqual(
      Object.fromEntries(['clone3', '470', '471', '500', '1000'].map((name) => [name, 'errno:38'])),
    )
  })

  testUnless(process.arch !== 'x64' && 'only x86-64 has other entries')('the 32-bit entry kills, for refused and for harmless calls alike', () => {
    const calls = [...refused, 'getpid', 'read', 'clone3']
    const verdicts = attempt('try-i386', calls)
    expect(Object.keys(verdicts).length).toBeGreaterThan(50)
    expect(Object.entries(verdicts).filter(([, verdict]) => verdict !== 'signal:31')).toEqual([])
    expect(attempt('try-i386', ['getpid'], '-')).toEqual({ getpid: 'ok' })
  })

  testUnless(process.arch !== 'x64' && 'only x86-64 has other entries')('the x32 bit kills', () => {
    expect(attempt('try-x32', ['0', '39', '165', '512'])).toEqual({ '0': 'signal:31', '39': 'signal:31', '165': 'signal:31', '512': 'signal:31' })
  })

  it('sockets of families without need are not opened, and those with need are', () => {
    const code = `
import socket
def attempt(*how):
    try: socket.socket(*how).close(); return 0
    except OSError as e: return e.errno
print([attempt(f, socket.SOCK_DGRAM, 0) for f in (17, 38, 40, 44, 29, 31)], [attempt(2, 3, 1), attempt(2, 1, 132), attempt(16, 3, 9)])
print([attempt(*how) for how in ((1, 1), (1, 2), (1, 5), (2, 1), (2, 2), (10, 1), (16, 3, 0))])`
    expect(python(code)).toBe('[97, 97, 97, 97, 97, 97] [1, 93, 97]\n[0, 0, 0, 0, 0, 0, 97]\n')
  })
})

describe('under the default filter these work', () => {
  it('python with threads, subprocesses, asynchronous ones, locks between processes and shared memory', () => {
    const code = `
import asyncio, mmap, multiprocessing as m, os, select, socket, subprocess, tempfile, threading
from concurrent.futures import ProcessPoolExecutor
total = []
threads = [threading.Thread(target=lambda n=n: total.append(n)) for n in range(20)]
[t.start() for t in threads]; [t.join() for t in threads]
async def child():
    p = await asyncio.create_subprocess_exec('echo', 'async', stdout=asyncio.subprocess.PIPE)
    return (await p.communicate())[0].decode().strip()
def work(lock, value):
    for _ in range(100):
        with lock: value.value += 1
if __name__ == '__main__':
    lock, value = m.get_context('fork').Lock(), m.get_context('fork').Value('i', 0, lock=False)
    workers = [m.get_context('fork').Process(target=work, args=(lock, value)) for _ in range(3)]
    [w.start() for w in workers]; [w.join() for w in workers]
    poll = select.epoll(); a, b = socket.socketpair(); poll.register(b, select.EPOLLIN); a.send(b'x')
    server = socket.create_server(('127.0.0.1', 0)); peer = socket.create_connection(server.getsockname())
    with ProcessPoolExecutor(2) as pool: squares = list(pool.map(pow, range(4), [2] * 4))
    print(len(total), asyncio.run(child()), value.value, len(poll.poll(1)), squares, subprocess.run(['sh', '-c', 'echo sh | cat'], capture_output=True, text=True).stdout.strip(), os.cpu_count() > 0)`
    writeFileSync(join(place, 'home', 'many.py'), code)
    expect(run(['/usr/bin/python3', 'many.py'])).toBe('20 async 300 1 [0, 1, 4, 9] sh True\n')
  })

  it('node with workers, children, timers and a server that is asked by name, but without a list of network interfaces', () => {
    const code = `const { Worker } = require('worker_threads'), { execFileSync } = require('child_process'), os = require('os'), fs = require('fs'), http = require('http'), dns = require('dns')
      const interfaces = () => { try { return Object.keys(os.networkInterfaces()) } catch (error) { return error.info.errno } }
      const served = () => new Promise((resolve) => { const server = http.createServer((_, answer) => answer.end('served')).listen(0, '127.0.0.1', async () => {
        const { address } = await dns.promises.lookup('localhost', { family: 4 }), got = await fetch('http://' + address + ':' + server.address().port); resolve(await got.text()); server.close() }) })
      const worker = new Worker('require("worker_threads").parentPort.postMessage(6 * 7)', { eval: true })
      worker.once('message', (answer) => fs.promises.writeFile('x', String(answer)).then(() => setTimeout(async () => console.log(fs.readFileSync('x', 'utf8'), execFileSync('echo', ['child']).toString().trim(), await served(), interfaces()), 1)))`
    expect(run([process.execPath, '-e', code])).toBe('42 child served 97\n')
  })

  it('git init, commit and clone', () => {
    const script =
      'git init -q a && cd a && git -c user.name=n -c user.email=e commit -q --allow-empty -m one && cd .. && git clone -q "file://$PWD/a" b && git -C b log --format=%s'
    expect(run(['sh', '-c', script])).toBe('one\n')
  })

  it('gcc and what it builds, also with threads', () => {
    const code =
      '#include <pthread.h>\\n#include <stdio.h>\\nvoid *f(void *x){return x;}\\nint main(void){pthread_t t;pthread_create(&t,0,f,0);pthread_join(t,0);puts("hello");}'
    expect(run(['sh', '-c', `printf '${code}' > a.c && gcc -pthread a.c -o a.out && ./a.out`])).toBe('hello\n')
  })

  it('pip install from a local wheel', () => {
    const wheel = `
import subprocess, sys, zipfile
with zipfile.ZipFile('tiny-1-py3-none-any.whl', 'w') as z:
    z.writestr('tiny.py', 'answer = 42')
    z.writestr('tiny-1.dist-info/METADATA', 'Metadata-Version: 2.1\\nName: tiny\\nVersion: 1\\n')
    z.writestr('tiny-1.dist-info/WHEEL', 'Wheel-Version: 1.0\\nGenerator: x\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n')
    z.writestr('tiny-1.dist-info/RECORD', '')
subprocess.run([sys.executable, '-m', 'pip', 'install', '-q', '--no-index', '--no-deps', '--break-system-packages', '--target', 'lib', './tiny-1-py3-none-any.whl'], check=True)
sys.path.insert(0, 'lib'); import tiny; print(tiny.answer)`
    expect(python(wheel)).toBe('42\n')
  })
})
