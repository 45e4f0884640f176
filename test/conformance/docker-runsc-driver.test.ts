import { hold } from './hold.js'

/** What differs from a sandbox of gVisor that is started without an engine: what the engine mounts, and how it begins and ends. */
const own = [
  'isolation/devices',
  'isolation/cgroup-files',
  'isolation/system-files',
  'isolation/host-canary-file',
  'lifetime/run-leaves-nothing',
  'limits/disk-enforced',
]

hold('docker:runsc', 'driver', { isDeep: (id) => !own.includes(id) })
