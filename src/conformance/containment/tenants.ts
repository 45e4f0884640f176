import { ensure, ensureExited, ensureSame, text } from '../check.js'
import { randomName, withSandbox } from '../guest.js'
import type { SubjectSandbox } from '../subject.js'
import type { ContainmentCase } from './containment.js'
import { withDwelling } from './posture-look.js'

async function said(sandbox: SubjectSandbox, command: string): Promise<string> {
  return ensureExited(await sandbox.run(['sh', '-c', command]))
}

const ids: ContainmentCase = {
  id: 'tenants/ids',
  name: 'two sandboxes have no id of the host in common, where there are ids to give',
  group: 'tenants',
  threats: ['M-05', 'X-03'],
  tries: 'Compares the ids that programs of two sandboxes have on the host.',
  means: 'Whoever escapes from one sandbox can signal and read the programs of another.',
  needs: ['isolates', 'shared-kernel', 'user:root'],
  places: ['user'],
  run: (subject) =>
    withDwelling(subject, (first) =>
      withDwelling(subject, (second) => {
        const uidOf = (facts: typeof first.facts): string => [...new Set(facts.map(({ status }) => status.Uid?.split(/\s+/)[0] ?? ''))].join()
        const [one, other] = [uidOf(first.facts), uidOf(second.facts)]
        ensure(one !== other && one !== '' && other !== '', 'the two must differ', { one, other })
        return Promise.resolve(`${one} and ${other}`)
      }),
    ),
}

const blocks: ContainmentCase = {
  id: 'tenants/remains',
  name: 'nothing that a closed sandbox wrote is found in the next',
  group: 'tenants',
  threats: ['M-08'],
  tries: 'Writes a marker a thousand times in one sandbox, closes it, and searches all that the next can read of its own places.',
  means: "What one user's program wrote is there for the next.",
  needs: ['isolates'],
  places: ['user'],
  run: async (subject) => {
    const marker = randomName()
    await withSandbox(subject, (sandbox) =>
      said(sandbox, `for n in 1 2 3; do yes ${marker} | head -c 300000 >/tmp/$n; yes ${marker} | head -c 300000 >$n; done; cp /tmp/1 /dev/shm/`),
    )
    const found = await withSandbox(subject, (sandbox) => said(sandbox, `grep -rls ${marker} /tmp /var/tmp /dev/shm /workspace "$HOME" 2>/dev/null; echo`))
    ensureSame(found.trim(), '', 'where it was found')
    return 'found nowhere'
  },
}

const sameNames: ContainmentCase = {
  id: 'tenants/unique',
  name: 'two sandboxes share no random numbers, boot id or machine id',
  group: 'tenants',
  threats: ['M-07'],
  tries: 'Compares random bytes and ids of two sandboxes and of two forks of one.',
  means: 'Keys that one sandbox makes can be guessed by another.',
  needs: ['isolates'],
  places: ['user'],
  run: (subject) =>
    withSandbox(subject, (first) =>
      withSandbox(subject, async (second) => {
        const look =
          'head -c 16 /dev/urandom | od -An -tx1; cat /proc/sys/kernel/random/uuid; /usr/bin/python3 -I -S -c "import random; print(random.random())"'
        const lines = (await Promise.all([first, second].map((sandbox) => said(sandbox, look)))).map((each) => each.trim().split('\n'))
        const same = lines[0]?.filter((line) => lines[1]?.includes(line)) ?? []
        ensureSame(same, [], 'what is the same')
        return `${lines[0]?.length ?? 0} compared`
      }),
    ),
}

const quiet: ContainmentCase = {
  id: 'tenants/errors',
  name: 'errors name nothing of the host: no path of the engine, no stack',
  group: 'tenants',
  threats: ['M-16'],
  tries: 'Makes runs fail, and reads what the caller and the program are told.',
  means: 'A caller learns how the host is built.',
  needs: ['engine', 'isolates'],
  places: ['user'],
  run: (subject) =>
    withSandbox(subject, async (sandbox) => {
      const failing = await Promise.all([
        sandbox.run(['/no/such/program']).then(({ outcome, stderr }) => JSON.stringify(outcome) + text(stderr)),
        sandbox.run(['true'], { cwd: '/no/such' }).then(
          ({ outcome }) => JSON.stringify(outcome),
          (error: unknown) => String(error),
        ),
        sandbox.run(['sh', '-c', 'ls -la /proc/1/ /proc/1/root /proc/self/fd 2>&1; true']).then(({ stdout }) => text(stdout)),
      ])
      const folder = subject.host.canaries.file.path.split('/').at(-2) ?? ''
      const told = failing.filter((each) => each.includes(folder) || /\/dist\/|node_modules|at .*\.[jt]s:\d+|\/run\/glovebox/.test(each))
      ensureSame(told, [], 'what tells of the host')
      return `${failing.length} failures told in words`
    }),
}

export const tenantContainment: readonly ContainmentCase[] = [ids, blocks, sameNames, quiet]
