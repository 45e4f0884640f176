export { type ConnectOptions, connectWarden, type Warden } from './client.js'
export type { StartFailure, WardenExit } from './messages.js'
export type { StartResult, WardenProcess } from './run.js'
export type { ResourceLimit, StartRequest } from './start-payload.js'
