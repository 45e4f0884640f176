/** Opens cells, closes some of them when told to keep, says who it is and which processes it has, and then waits, or, when idle, for nothing. */
import { createBwrapDriver } from '../../../../src/drivers/bwrap/driver.js'
import { currentOwner, ownerName } from '../../../../src/sys/owner.js'
import { argumentsOf, findProcesses, parentOf } from '../../../../src/sys/processes.js'
import { type Guest, openGuest } from '../open-guest.js'

const [count, way] = process.argv.slice(2)
const driver = createBwrapDriver()
const guests: Guest[] = []
const most = 20
// One that was launched by the server says what it is; the arguments of any other name bwrap, whoever builds its cell.
const isMonitor = (pid: number): boolean => argumentsOf(pid).some((argument) => argument.endsWith('/bwrap') || argument === '--cell')
const childrenOf = (parent: number | undefined): number[] => findProcesses((pid) => parentOf(pid) === parent)
const serverOf = (): number | undefined => childrenOf(process.pid).find((pid) => argumentsOf(pid)[1] === '--serve')
const isServed = (): boolean => way === 'idle' || childrenOf(serverOf()).some(isMonitor)
// The first by this process itself, the last by the server that was started meanwhile.
for (let index = 0; index < Number(count) || !isServed(); index++) {
  if (index === most) throw new Error(`of ${most} cells none was launched by the server`)
  const guest = await openGuest({ driver })
  guests.push(guest)
  // What is left is never the next cell's.
  if (way !== 'keep') await guest.sh('(setsid sleep 1000 > /dev/null 2>&1 &)')
}
if (way === 'keep') for (const guest of guests.splice(0, guests.length / 2)) await guest[Symbol.asyncDispose]()
const server = serverOf()
const monitors = [...childrenOf(process.pid), ...childrenOf(server)].filter(isMonitor)
process.stdout.write(`${JSON.stringify({ owner: ownerName(currentOwner()), monitors, server })}\n`)
if (way !== 'idle') process.stdin.resume()
