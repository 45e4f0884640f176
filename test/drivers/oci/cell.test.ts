import { execFileSync } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect } from 'vitest'
import { programPath } from '../../../src/cell/facts.js'
import { createOciDriver } from '../../../src/drivers/oci/driver.js'
import { type RuntimeName, runtimeNames } from '../../../src/drivers/oci/runtimes.js'
import { findFirstProcess } from '../../../src/cell/first-process.js'
import { statePlace } from '../../../src/sys/places.js'
import { findProcesses, parentOf } from '../../../src/sys/processes.js'
import { startScript } from '../../sys/run-script.js'
import { testUnless } from '../../unless.js'
import { openGuest } from '../bwrap/open-guest.js'

const isRoot = process.getuid?.() === 0

function lacking(name: RuntimeName): string | false {
  return programPath(name) === undefined && `${name} is not installed`
}

function below(folder: string): string[] {
  try {
    return readdirSync(folder)
  } catch {
    return []
  }
}

/** Folders of cgroups and bundles that bear an owner's name. */
function leftOf(owner: string): string[] {
  const groups = (folder: string): string[] => below(folder).flatMap((name) => (name.includes(owner) ? [join(folder, name)] : groups(join(folder, name))))
  const bundles = below(join(statePlace(), 'bundles')).filter((name) => name.includes(owner))
  return [...groups('/sys/fs/cgroup'), ...bundles]
}

describe.each(runtimeNames)('%s', (name) => {
  testUnless(lacking(name), { timeout: 60_000 })('what a killed engine left is known by its bundle, and cleared away by the next', async () => {
    const script = await startScript(new URL('./programs/hold-container.ts', import.meta.url), [name])
    const { owner } = JSON.parse(await script.firstLine) as { owner: string }
    expect(leftOf(owner).length).toBeGreaterThan(isRoot ? 1 : 0)
    script.child.kill('SIGKILL')
    await script.ended
    const sweep = async (): Promise<string[]> => {
      await using guest = await openGuest({ driver: createOciDriver(name) })
      expect(await guest.sh('echo here')).toBe('here\n')
      return leftOf(owner)
    }
    await expect.poll(sweep, { timeout: 20_000, interval: 200 }).toEqual([])
  })

  testUnless(lacking(name))('the first process has no right but over its own namespaces, and no descriptor that the runtime left', async () => {
    await using guest = await openGuest({ driver: createOciDriver(name) })
    expect(await guest.sh('cat /proc/1/comm; ls /proc/self/fd | wc -l; ls /sys 2>&1 | wc -l; cat /proc/self/uid_map | wc -l')).toBe('warden\n4\n1\n1\n')
  })
})

/** A runtime with a hole as some had: what it starts inherits a folder of the host's. */
const leaky = (runtime: string): string => `
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
int main(int argc, char **argv)
{
  char **words = calloc((size_t)argc + 3, sizeof *words);
  char count[16];
  int handed = 0, at = 0;
  for (int i = 0; i < argc; i++) {
    if (strcmp(argv[i], "--preserve-fds") == 0) {
      handed = atoi(argv[++i]);
      continue;
    }
    if (strcmp(argv[i], "--bundle") == 0) {
      int root = open("/", O_RDONLY | O_DIRECTORY);
      if (root < 0 || dup2(root, 3 + handed) < 0) return 9;
      snprintf(count, sizeof count, "%d", handed + 1);
      words[at++] = "--preserve-fds";
      words[at++] = count;
    }
    words[at++] = argv[i];
  }
  execv("${runtime}", words);
  return 8;
}
`

describe('a runtime that leaks a folder of the host’s', () => {
  let folder: string
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'gbx-leaky-'))
  })
  afterAll(() => rmSync(folder, { recursive: true, force: true }))

  testUnless(lacking('runc'))('leaks it to nobody in the cell', async () => {
    const source = join(folder, 'leaky.c')
    writeFileSync(source, leaky(programPath('runc') ?? ''))
    execFileSync('gcc', ['-static', '-o', join(folder, 'runc'), source])
    await using guest = await openGuest({ driver: createOciDriver('runc', { programs: { runtime: join(folder, 'runc') } }) })
    const monitors = findProcesses((pid) => parentOf(pid) === process.pid)
    const warden = monitors.map((pid) => findFirstProcess(pid, { isWithin: !isRoot })).find((pid) => pid !== undefined) as number
    const links = readdirSync(`/proc/${warden}/fd`).map((fd) => execFileSync('readlink', [`/proc/${warden}/fd/${fd}`], { encoding: 'utf8' }).trim())
    expect(links).not.toContain('/')
    expect(await guest.sh('ls /proc/self/fd | wc -l')).toBe('4\n')
    expect(readFileSync(`/proc/${warden}/comm`, 'utf8')).toBe('warden\n')
  })
})
