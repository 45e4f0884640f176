/** Begins a snapshot in the folder it is told, says so, and waits to be killed. */
import { createSnapshotStore } from '../../../src/templates/snapshots.js'

const folder = process.argv[2] ?? ''
const draft = await createSnapshotStore(() => folder).draft('host')
for (let written = 0; written < 8; written += 1) await draft.write(new Uint8Array(262_144))
process.stdout.write('writing\n')
process.stdin.resume()
