/** Opens cells, says who it is and which processes it has, and then waits, or, when idle, for nothing. */
import { currentOwner, ownerName } from '../../../../src/sys/owner.js'
import { argumentsOf, findProcesses, parentOf } from '../../../../src/sys/processes.js'
import { openGuest } from '../open-guest.js'

const [count, way] = process.argv.slice(2)
for (let index = 0; index < Number(count); index++) {
  const guest = await openGuest()
  await guest.sh('(setsid sleep 1000 > /dev/null 2>&1 &)')
}
const monitors = findProcesses((pid) => parentOf(pid) === process.pid && argumentsOf(pid).some((argument) => argument.endsWith('/bwrap')))
process.stdout.write(`${JSON.stringify({ owner: ownerName(currentOwner()), monitors })}\n`)
if (way !== 'idle') process.stdin.resume()
