import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** Receipts that tests ask for are signed with a key of their own: the machine's is neither made nor used. */
export function setup(): () => void {
  const folder = mkdtempSync(join(tmpdir(), 'glovebox-test-keys-'))
  process.env.GLOVEBOX_KEY_DIR = folder
  return () => rmSync(folder, { recursive: true, force: true })
}
