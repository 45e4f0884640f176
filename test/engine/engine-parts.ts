import { generateKeyPairSync } from 'node:crypto'
import type { EngineOptions } from '../../src/engine/engine-options.js'
import { createSnapshotStore } from '../../src/templates/snapshots.js'
import { listenOnLoopback } from '../../src/sys/loopback-listener.js'
import { runtimeFiles } from '../../src/sys/runtime-files.js'
import { createEventBus } from '../../src/watch/event-bus.js'
import { signReceipt } from '../../src/receipt/index.js'

/** What an engine is handed besides drivers, templates and filters: a key of its own, and nothing of this machine. */
export function engineParts(): Pick<EngineOptions, 'commands' | 'mounts' | 'signer' | 'machine' | 'listen' | 'snapshots' | 'runtimes' | 'events'> {
  const { privateKey } = generateKeyPairSync('ed25519')
  return {
    commands: (names) => Promise.resolve({ executable: names, readable: [], unlisted: undefined }),
    snapshots: createSnapshotStore(),
    mounts: (mounts) => Promise.resolve(mounts),
    signer: { sign: (unsigned) => Promise.resolve(signReceipt(unsigned, privateKey)) },
    machine: { version: '0.0.0', kernel: '6.0.0', arch: 'x64', processors: 2 },
    listen: listenOnLoopback,
    runtimes: runtimeFiles,
    events: createEventBus(),
  }
}
