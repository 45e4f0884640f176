/** Claims as many ranges as it is told and says which, as another engine would. Far above those that real cells of this machine have: a sweep kills what is in them. */
import { createUidRanges } from '../../../src/sys/uid-ranges.js'

const [folder, count] = process.argv.slice(2) as [string, string]
const ranges = createUidRanges({ folder, foreign: [[0x78000000, 1700 * 65_536]] })
const claimed = Array.from({ length: Number(count) }, (_, index) => ranges.claim(`cell${index}`).base)
process.stdout.write(`${JSON.stringify(claimed)}\n`)
// Keeps what it has until it is told that the others have claimed too.
process.stdin.resume()
