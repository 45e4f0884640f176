/** Opens a cell of a runtime, which may be another program than is found, leaves a program in it, says who it is, and waits. */
import { createOciDriver } from '../../../../src/drivers/oci/driver.js'
import { createGvisorDriver } from '../../../../src/drivers/oci/gvisor-driver.js'
import { currentOwner, ownerName } from '../../../../src/sys/owner.js'
import { openGuest } from '../../bwrap/open-guest.js'

const [, , name, runtime] = process.argv
const container = (): ReturnType<typeof createOciDriver> => createOciDriver(name as 'runc', runtime === undefined ? {} : { programs: { runtime } })
const guest = await openGuest({ driver: name === 'runsc' ? createGvisorDriver() : container() })
await guest.sh('(setsid sleep 1000 > /dev/null 2>&1 &)')
process.stdout.write(`${JSON.stringify({ owner: ownerName(currentOwner()) })}\n`)
process.stdin.resume()
