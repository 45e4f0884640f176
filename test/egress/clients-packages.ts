/** Clients that Debian packages: installed where that can be done, told of where not. */
import { execFileSync } from 'node:child_process'

/** By a shell of this machine, whose /usr cells have too. Outside of this folder, whose own packages they have not. */
export function isThere(check: string): boolean {
  try {
    execFileSync('sh', ['-c', check], { stdio: 'ignore', cwd: '/' })
    return true
  } catch {
    return false
  }
}

/** Does what it can, so that what is still missing afterwards cannot be had here. */
export function installMissing(packages: Readonly<Record<string, string>>): void {
  const missing = Object.entries(packages).flatMap(([name, check]) => (isThere(check) ? [] : [name]))
  if (missing.length === 0 || process.getuid?.() !== 0 || !isThere('command -v apt-get')) return
  const options = ['install', '-y', '-q', '--no-install-recommends', '-o', 'DPkg::Lock::Timeout=60', ...missing]
  isThere(`apt-get ${options.join(' ')} || { apt-get -q update && apt-get ${options.join(' ')}; }`)
}

const fromPython = (module: string): string => `/usr/bin/python3 -c 'import ${module}'`
const fromNode = (module: string): string => `NODE_PATH=/usr/share/nodejs node -e 'require("${module}")'`

export const debianClients = {
  'python3-httpx': fromPython('httpx'),
  'python3-websockets': fromPython('websockets'),
  'python3-dnspython': fromPython('dns.resolver'),
  'node-ws': fromNode('ws'),
  'node-https-proxy-agent': fromNode('https-proxy-agent'),
} as const
