export { connectWarden, type Warden } from './client.js'
export type { WardenExit } from './messages.js'
export type { StartResult, WardenProcess } from './run.js'
export type { StartRequest, TerminalSize } from './start-payload.js'
