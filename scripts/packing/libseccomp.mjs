// libseccomp for another architecture, from Debian's mirror, without telling this machine's dpkg about that architecture: apt works on lists, a cache and a
// package status of its own, all below build/, and the package is only unpacked there. It needs no root.
import { existsSync, mkdirSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { mustRun } from '../command.mjs'

const debianNames = { x64: 'amd64', arm64: 'arm64' }

/** @param {string} place @param {string} architecture Debian's name for it */
function aptOptions(place, architecture) {
  const settings = {
    'APT::Architecture': architecture,
    'APT::Architectures': architecture,
    'APT::Sandbox::User': 'root',
    'Dir::State': join(place, 'state'),
    'Dir::State::status': join(place, 'status'),
    'Dir::Cache': join(place, 'cache'),
    'Acquire::Languages': 'none',
  }
  return Object.entries(settings).flatMap(([name, value]) => ['-o', `${name}=${value}`])
}

/** The folder below which usr/include and usr/lib are. @param {{ root: string, arch: 'x64' | 'arm64' }} options @returns {Promise<string>} */
export async function fetchLibseccomp({ root, arch }) {
  const target = join(root, `build/libseccomp-${arch}`)
  if (existsSync(target)) return target
  const place = `${target}.${process.pid}.draft`
  for (const folder of ['state/lists/partial', 'cache/archives/partial']) mkdirSync(join(place, folder), { recursive: true })
  writeFileSync(join(place, 'status'), '')
  const apt = ['apt-get', '-q', ...aptOptions(place, debianNames[arch])]
  const hint = 'libseccomp of the other architecture comes from a Debian mirror; pack where apt-get reaches one'
  try {
    await mustRun([...apt, 'update'], { cwd: place, hint })
    await mustRun([...apt, 'download', `libseccomp-dev:${debianNames[arch]}`], { cwd: place, hint })
    const archive = readdirSync(place).find((name) => name.endsWith('.deb')) ?? ''
    await mustRun(['dpkg-deb', '-x', join(place, archive), join(place, 'unpacked')], { cwd: place })
    // Another pack of this clone may have been faster; what it brought is the same.
    if (!existsSync(target)) renameSync(join(place, 'unpacked'), target)
    return target
  } finally {
    rmSync(place, { recursive: true, force: true })
  }
}
