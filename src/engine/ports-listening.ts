import type { Warden } from '../channel/index.js'

/** Whether something listens on a port of the cell's loopback, found out by connecting to it. */
export async function isListening(warden: Pick<Warden, 'connect'>, port: number): Promise<boolean> {
  try {
    const connection = await warden.connect(port)
    await connection.destroy()
    return true
  } catch {
    return false
  }
}
