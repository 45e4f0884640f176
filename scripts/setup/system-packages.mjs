// What Glovebox needs from the operating system, found by trying, and how each package manager calls it.
import { spawnSync } from 'node:child_process'
import { setTimeout as sleep } from 'node:timers/promises'
import { isOnPath, lastLines, runCommand, StepFailed } from '../command.mjs'

/**
 * @typedef {'cell' | 'compiler' | 'seccomp' | 'cross-compiler' | 'emulator' | 'other-user' | 'git' | 'python' | 'containers' | 'gvisor'} Need
 * @typedef {{ program: string, packages: Record<Need, readonly string[]>, update?: readonly string[], prepare?: readonly string[], install: readonly string[], byHand: string }} PackageManager
 */

/** @type {readonly PackageManager[]} */
const packageManagers = [
  {
    program: 'apt-get',
    packages: {
      cell: ['bubblewrap'],
      compiler: ['gcc', 'libc6-dev'],
      seccomp: ['libseccomp-dev'],
      'cross-compiler': ['gcc-aarch64-linux-gnu', 'libc6-dev-arm64-cross'],
      emulator: ['qemu-user-static'],
      'other-user': ['util-linux'],
      git: ['git'],
      python: ['python3', 'python3-pip'],
      containers: ['runc', 'crun'],
      gvisor: ['runsc'],
    },
    update: ['apt-get', 'update'],
    // Does nothing unless an earlier installation was cut off half-way.
    prepare: ['dpkg', '--configure', '-a'],
    install: ['apt-get', 'install', '-y', '-q', '--no-install-recommends', '-o', 'DPkg::Lock::Timeout=300'],
    byHand: 'apt-get install -y',
  },
  {
    program: 'dnf',
    packages: {
      cell: ['bubblewrap'],
      compiler: ['gcc', 'glibc-devel', 'glibc-static'],
      seccomp: ['libseccomp-devel', 'libseccomp-static'],
      'cross-compiler': [],
      emulator: ['qemu-user-static'],
      'other-user': ['util-linux'],
      git: ['git'],
      python: ['python3', 'python3-pip'],
      containers: ['runc', 'crun'],
      gvisor: [],
    },
    install: ['dnf', 'install', '-y', '-q'],
    byHand: 'dnf install -y',
  },
  {
    program: 'apk',
    packages: {
      cell: ['bubblewrap'],
      compiler: ['gcc', 'musl-dev', 'linux-headers'],
      seccomp: ['libseccomp-dev', 'libseccomp-static'],
      'cross-compiler': [],
      emulator: ['qemu-aarch64'],
      'other-user': ['setpriv'],
      git: ['git'],
      python: ['python3', 'py3-pip'],
      containers: ['runc', 'crun'],
      gvisor: [],
    },
    install: ['apk', 'add', '--no-progress'],
    byHand: 'apk add',
  },
  {
    program: 'pacman',
    packages: {
      cell: ['bubblewrap'],
      compiler: ['gcc', 'linux-api-headers'],
      seccomp: ['libseccomp'],
      'cross-compiler': ['aarch64-linux-gnu-gcc'],
      emulator: ['qemu-user-static'],
      'other-user': ['util-linux'],
      git: ['git'],
      python: ['python', 'python-pip'],
      containers: ['runc', 'crun'],
      gvisor: [],
    },
    install: ['pacman', '-Sy', '--noconfirm', '--needed'],
    byHand: 'pacman -Sy --needed',
  },
]

/** @param {string} program @param {readonly string[]} libraries */
function canLinkStatic(program, libraries) {
  const compiler = isOnPath('gcc') ? 'gcc' : 'cc'
  const result = spawnSync(compiler, ['-static', '-x', 'c', '-', '-o', '/dev/null', ...libraries], { input: program })
  return result.status === 0
}

/** Not every release of Debian's kind has it, and nothing but its own driver needs it. */
function offersGvisor() {
  return isOnPath('apt-cache') && spawnSync('apt-cache', ['show', 'runsc'], { stdio: 'ignore' }).status === 0
}

/** @type {Record<Need, () => boolean>} */
const isThere = {
  cell: () => isOnPath('bwrap'),
  compiler: () => canLinkStatic('#include <stdio.h>\nint main(void) { return puts(""); }\n', []),
  seccomp: () => canLinkStatic('#include <seccomp.h>\nint main(void) { return seccomp_init(0) != 0; }\n', ['-lseccomp']),
  'cross-compiler': () => process.arch === 'arm64' || isOnPath('aarch64-linux-gnu-gcc'),
  emulator: () => process.arch === 'arm64' || isOnPath('qemu-aarch64-static'),
  'other-user': () => isOnPath('setpriv'),
  git: () => isOnPath('git'),
  containers: () => isOnPath('runc') && isOnPath('crun'),
  gvisor: () => isOnPath('runsc') || !offersGvisor(),
  python: () => spawnSync('/usr/bin/python3', ['-m', 'pip', '--version'], { stdio: 'ignore' }).status === 0,
}

/** @param {readonly Need[]} needs */
export function missingNeeds(needs) {
  return process.platform === 'linux' ? needs.filter((need) => !isThere[need]()) : []
}

/** How this account may act as root: not at all (undefined), as it is, or through sudo without a password. @returns {readonly string[] | undefined} */
function rootPrefix() {
  if (process.getuid?.() === 0) return []
  return spawnSync('sudo', ['-n', 'true'], { timeout: 5_000, stdio: 'ignore' }).status === 0 ? ['sudo', '-n'] : undefined
}

/** The one command a person has to run for these needs, or undefined where no known package manager is. @param {readonly Need[]} needs */
export function installCommand(needs) {
  const manager = packageManagers.find(({ program }) => isOnPath(program))
  if (manager === undefined) return undefined
  const prefix = process.getuid?.() === 0 ? '' : 'sudo '
  const update = manager.update === undefined ? '' : `${prefix}${manager.update.join(' ')} && `
  return `${update}${prefix}${manager.byHand} ${packageNames(needs)}`
}

/** What the needs are called here, or where no package manager is known, what Debian calls them. @param {readonly Need[]} needs */
export function packageNames(needs) {
  const manager = packageManagers.find(({ program }) => isOnPath(program)) ?? packageManagers[0]
  return needs.flatMap((need) => manager?.packages[need] ?? []).join(' ')
}

/**
 * The lists have a lock that apt does not wait for; another installation on the machine may hold it for a while.
 * @param {readonly string[]} argv @param {import('../command.mjs').CommandOptions} options
 */
async function updateLists(argv, options) {
  for (let attempt = 0; ; attempt++) {
    const result = await runCommand(argv, options)
    if (result.code === 0 || attempt === 60 || !/could not get lock/i.test(result.output)) return result
    await sleep(2_000)
  }
}

/** Whether this account may install packages here at all. */
export function mayInstall() {
  return packageManagers.some(({ program }) => isOnPath(program)) && rootPrefix() !== undefined
}

/** Installs what the needs are called here. @param {readonly Need[]} needs @param {import('../command.mjs').CommandOptions} [options] */
export async function installPackages(needs, options = {}) {
  const manager = packageManagers.find(({ program }) => isOnPath(program))
  const prefix = rootPrefix()
  if (manager === undefined || prefix === undefined) throw new StepFailed('this account may not install packages')
  const environment = [...prefix, 'env', 'DEBIAN_FRONTEND=noninteractive']
  const install = [...environment, ...manager.install, ...needs.flatMap((need) => manager.packages[need])]
  if (manager.prepare !== undefined) await runCommand([...environment, ...manager.prepare], options)
  let result = await runCommand(install, options)
  // The lists may be missing (a fresh image) or older than the mirror; both look like a package that cannot be had.
  if (result.code !== 0 && manager.update !== undefined) {
    await updateLists([...environment, ...manager.update], options)
    result = await runCommand(install, options)
  }
  if (result.code === 0) return
  throw new StepFailed(`${install.join(' ')} ended with ${result.code}`, { tail: lastLines(result.output), hint: installCommand(needs) })
}
