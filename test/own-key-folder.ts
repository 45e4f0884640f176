import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** Receipts that tests ask for are signed with a key of their own, and snapshots kept in a place of their own: the machine's are neither made nor used. */
export function setup(): () => void {
  const folder = mkdtempSync(join(tmpdir(), 'glovebox-test-keys-'))
  process.env.GLOVEBOX_KEY_DIR = folder
  process.env.GLOVEBOX_SNAPSHOT_DIR = join(folder, 'snapshots')
  return () => rmSync(folder, { recursive: true, force: true })
}
