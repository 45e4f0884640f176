import type { ServerCase } from './server-view.js'

export const serverCases: readonly ServerCase[] = []
