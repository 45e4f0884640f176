import type { Warden } from '../channel/index.js'
import { SandboxError } from '../contract/errors.js'

/** Whether something listens on a port of the cell's loopback, found out by connecting to it. */
export async function isListening(warden: Pick<Warden, 'connect'>, port: number): Promise<boolean> {
  try {
    const connection = await warden.connect(port)
    await connection.destroy()
    return true
  } catch (error) {
    if (error instanceof SandboxError && (error.code === 'not-found' || error.code === 'busy')) return false
    throw error
  }
}
