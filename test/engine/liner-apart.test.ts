import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { descendantsOf } from '../../src/sys/posture/process-tree.js'
import { killProcess } from '../../src/sys/processes.js'
import { type LinedSandbox, openLined } from './lined.js'
import { waitUntil } from './processes.js'

const python = '/usr/bin/python3'
const order = { language: 'python', imports: ['json'] } as const

let lined: LinedSandbox
beforeAll(async () => {
  lined = await openLined({ limits: { cpus: 2 } })
  await lined.sandbox.ensureZygote(order)
})
afterAll(() => lined[Symbol.asyncDispose]())

const py = (code: string) => lined.run([python, '-c', code])

/** By their names, as they call themselves. */
function called(name: string): number[] {
  return descendantsOf(process.pid).filter((pid) => {
    try {
      return readFileSync(`/proc/${pid}/comm`, 'utf8') === `${name}\n`
    } catch {
      return false
    }
  })
}

const plant = `
import os, json, builtins, subprocess, sys, multiprocessing.shared_memory as m, ctypes, time, threading, signal
for place in ("/workspace", "/tmp", "/home/user", "/dev/shm", "/var/tmp"): open(place + "/planted", "w").write("x")
os.makedirs("/home/user/.local/lib/python3.11/site-packages"); open("/home/user/.local/lib/python3.11/site-packages/sitecustomize.py", "w").write("print('owned')")
os.environ["PLANTED"] = "1"; json.planted = 1; builtins.planted = 1; sys.path.insert(0, "/workspace")
ctypes.CDLL(None).shmget(4242, 4096, 0o1600); ctypes.CDLL(None).setitimer(0, None, None)
subprocess.Popen(["sleep", "333"], start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0: time.sleep(333)
    os._exit(0)
import socket; s = socket.socket(socket.AF_UNIX); s.bind("\\0planted"); s.listen(); t = socket.socket(); t.bind(("127.0.0.1", 4242)); t.listen()
def look():
    found = [p for p in ("/workspace", "/tmp", "/home/user", "/dev/shm", "/var/tmp") if os.path.exists(p + "/planted")]
    found += [n for n in ("PLANTED",) if n in os.environ] + [n for n in ("planted",) if hasattr(json, n) or hasattr(builtins, n)]
    found += ["shm"] if ctypes.CDLL(None).shmget(4242, 4096, 0o600) >= 0 else []
    for address, kind in (("\\0planted", socket.AF_UNIX), (("127.0.0.1", 4242), socket.AF_INET)):
        try: socket.socket(kind).connect(address); found.append(str(address))
        except OSError: pass
    found += [c for c in (open(f"/proc/{p}/comm").read().strip() for p in os.listdir("/proc") if p.isdigit()) if c == "sleep"]
    return found
`

describe('two runs in one cell, each in a liner', () => {
  test('have nothing in common that one could leave to the other', async () => {
    const look = plant.slice(plant.indexOf('def look'))
    const head = 'import os, json, builtins, socket, ctypes, sys\n'
    expect((await py(`${plant}\nprint(len(look()))`)).out).toBe('11\n')
    expect((await py(`${head}${look}\nprint(look(), "planted" in sys.path)`)).out).toBe('[] False\n')
    await waitUntil(() => called('sleep').length === 0)
  })

  test('do not see each other while both run', async () => {
    const code = 'import os, time; open("/tmp/mine", "w"); time.sleep(0.5); print(sorted(p for p in os.listdir("/proc") if p.isdigit()), os.listdir("/tmp"))'
    const said = await Promise.all([py(code), py(code)])
    expect(said.map(({ out }) => out)).toEqual(["['1', '2'] ['mine']\n", "['1', '2'] ['mine']\n"])
  })

  test('reach neither the zygote nor the cradle nor the warden', async () => {
    const code = `
import os, ctypes, signal
libc = ctypes.CDLL(None, use_errno=True)
def told(act):
    try: return act()
    except OSError as error: return type(error).__name__
def raw(*call): return libc.syscall(*call) if libc.syscall(*call) >= 0 else os.strerror(ctypes.get_errno())
print(told(lambda: os.kill(-1, 0)), [p for p in range(3, 400) if told(lambda: os.kill(p, 0)) is None])
print(told(lambda: os.kill(1, signal.SIGKILL)), os.path.exists("/proc/1"), told(lambda: os.listdir("/proc/1/fd")), told(lambda: open("/proc/1/mem", "rb").read(1)))
print(told(lambda: os.listdir("/proc/1/root")), sorted(int(n) for n in os.listdir("/proc/self/fd"))[:3], raw(101, 16, 1, 0, 0), raw(310, 1, 0, 0, 0, 0, 0))
print(raw(272, 0x10000000), raw(308, 0, 0), raw(165, 0, 0, 0, 0, 0), [n for n in os.listdir("/proc/self/fd") if "socket" in told(lambda: os.readlink("/proc/self/fd/" + n))])
`
    const said = await py(code)
    expect([said.err, said.out.split('\n')]).toEqual([
      '',
      [
        'ProcessLookupError []',
        'None True PermissionError PermissionError',
        'PermissionError [0, 1, 2] Operation not permitted Operation not permitted',
        'Operation not permitted Operation not permitted Operation not permitted []',
        '',
      ],
    ])
    expect(called('zygote').length).toBe(1)
  })

  test('cannot say who is to end first where memory is used up, nor write anything else in /proc', async () => {
    const code = `
import os
def told(path):
    try: open("/proc/" + path, "w").write("0")
    except OSError as error: return error.strerror
print(open("/proc/self/oom_score_adj").read().strip(), [told(path) for path in ("self/oom_score_adj", "1/oom_score_adj", "self/comm", "sys/kernel/hostname")])
print(open("/proc/self/oom_score_adj").read().strip(), open("/proc/self/fd/1", "w").write("control\\n"))`
    const { out, err } = await py(code)
    const refusals = Array.from({ length: 4 }, () => "'Read-only file system'").join(', ')
    expect([err, out]).toEqual(['', `control\n1000 [${refusals}]\n1000 8\n`])
  })

  test('a fork bomb in one is held, and takes nothing from those who come after', async () => {
    const bomb = await py('import os, time\nwhile True:\n  try: os.fork()\n  except OSError: time.sleep(0.2); os._exit(0)')
    expect(bomb.outcome).toBeDefined()
    expect((await py('print("after")')).out).toBe('after\n')
  })

  test('go on without a zygote that died, and have another soon', { timeout: 10_000 }, async () => {
    await new Promise((resolve) => setTimeout(resolve, 1100))
    const [old] = called('zygote')
    if (old === undefined) throw new Error('there is no zygote')
    killProcess(old)
    expect((await py('print("still")')).out).toBe('still\n')
    await waitUntil(() => called('zygote').some((pid) => pid !== old))
    await lined.sandbox.ensureZygote(order)
    expect((await py('import sys; print("json" in sys.modules)')).out).toBe('True\n')
  })
})

test('a module that is not there is told by its name', async () => {
  await using other = await openLined()
  await expect(other.sandbox.ensureZygote({ language: 'python', imports: ['no_such_module'] })).rejects.toMatchObject({
    code: 'invalid',
    message: expect.stringContaining('import no_such_module: ModuleNotFoundError') as string,
  })
  await expect(other.sandbox.ensureZygote({ language: 'python', imports: ['os; print(1)'] })).rejects.toMatchObject({ code: 'invalid' })
  expect((await other.run([python, '-c', 'print(2)'])).out).toBe('2\n')
})

test.for([
  [{ seccomp: { defaultAction: 'SCMP_ACT_ALLOW' } }, 'seccomp'],
  [{ root: 'overlay' }, 'root'],
  [{ commands: ['true'] }, 'commands'],
  [{ mounts: [{ source: '/usr', target: '/mnt/usr' }] }, 'mounts'],
] as const)('no cell for liners is opened with %o', async ([spec, field]) => {
  await expect(openLined(spec as object)).rejects.toMatchObject({ code: 'unsupported', message: expect.stringMatching(`^${field}:`) as string })
})

test.for([
  [{ terminal: { rows: 1, cols: 1 } }, 'terminal'],
  [{ background: true }, 'background'],
  [{ user: 'root' }, 'user'],
] as const)('%o is refused', async ([more, field]) => {
  await expect(lined.sandbox.startLined({ command: 'true', ...more }, undefined)).rejects.toMatchObject({
    code: 'unsupported',
    message: expect.stringContaining(`${field}:`) as string,
  })
})
