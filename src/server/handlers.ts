import type { Handlers } from './call.js'
import type { Desk } from './desk.js'
import { codeHandlers } from './resources/code.js'
import { fileHandlers } from './resources/files.js'
import { auditHandlers, type HouseDesk, houseHandlers, type HouseParts, keyHandlers, tenantHandlers } from './resources/house.js'
import { networkHandlers, poolHandlers, snapshotHandlers } from './resources/places.js'
import { portHandlers, type PortsParts } from './resources/ports.js'
import { processHandlers } from './resources/processes.js'
import { runHandlers } from './resources/runs.js'
import { sandboxHandlers } from './resources/sandboxes.js'

export function allHandlers(desk: Desk, parts: HouseParts & PortsParts, own: HouseDesk): Handlers {
  return {
    ...portHandlers(parts),
    ...sandboxHandlers(desk),
    ...processHandlers(desk),
    ...runHandlers(desk),
    ...fileHandlers(desk),
    ...codeHandlers(desk),
    ...networkHandlers(desk),
    ...snapshotHandlers,
    ...poolHandlers(desk),
    ...keyHandlers(parts),
    ...tenantHandlers(parts),
    ...auditHandlers(parts),
    ...houseHandlers(parts, own),
  }
}
