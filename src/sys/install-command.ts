import { existsSync } from 'node:fs'

const packageTools = [
  { program: '/usr/bin/apt-get', command: 'apt-get install -y' },
  { program: '/usr/bin/dnf', command: 'dnf install -y' },
  { program: '/sbin/apk', command: 'apk add' },
  { program: '/usr/bin/pacman', command: 'pacman -S --noconfirm' },
] as const

/** The command by which a person installs a system package here. */
export function installCommand(systemPackage: string): string {
  const tool = packageTools.find(({ program }) => existsSync(program)) ?? packageTools[0]
  return `${process.getuid?.() === 0 ? '' : 'sudo '}${tool.command} ${systemPackage}`
}
