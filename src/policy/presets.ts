import type { PolicyInput, PresetName } from '../contract/policy.js'

/** Policies that come with us. */
export const presets: Readonly<Record<PresetName, PolicyInput>> = {
  strict: {
    description: 'For code that is trusted least: small, short, alone with its own files.',
    ceiling: {
      limits: {
        memory: '256m',
        cpus: 0.5,
        cpuTime: '10s',
        time: '30s',
        disk: '32m',
        inodes: 4096,
        fileSize: '16m',
        openFiles: 256,
        processes: 32,
        output: '1m',
      },
      lifetime: '2m',
      minTier: 'process',
      users: ['user'],
      roots: ['readonly'],
      mounts: { sources: [], modes: [] },
      network: false,
      seccomp: 'default-only',
    },
  },
  default: { description: 'What there is without a policy: our defaults, and no ceiling.' },
  data: {
    description: 'For data analysis: room to compute, folders of the host for reading only.',
    defaults: {
      limits: { memory: '4g', cpus: 2, time: '10m', disk: '2g', processes: 256, output: '64m' },
      lifetime: '1h',
    },
    ceiling: { lifetime: '8h', minTier: 'process', users: ['user'], mounts: { modes: ['ro'] }, seccomp: 'default-only' },
  },
}
