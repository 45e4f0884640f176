import { accountingCases } from './cases/accounting.js'
import { diskAttackCases } from './cases/attacks-disk.js'
import { memoryAttackCases } from './cases/attacks-memory.js'
import { processAttackCases } from './cases/attacks-processes.js'
import { badInputCases } from './cases/bad-input.js'
import { bytesCases } from './cases/bytes.js'
import { concurrencyCases } from './cases/concurrency.js'
import { endingCases } from './cases/endings.js'
import { fileIsolationCases } from './cases/isolation-files.js'
import { inodeIsolationCases } from './cases/isolation-inodes.js'
import { kernelIsolationCases } from './cases/isolation-kernel.js'
import { networkIsolationCases } from './cases/isolation-network.js'
import { processIsolationCases } from './cases/isolation-processes.js'
import { lifetimeCases } from './cases/lifetime.js'
import { cellLimitCases } from './cases/limits-cell.js'
import { runLimitCases } from './cases/limits-run.js'
import { programCases } from './cases/programs.js'
import { receiptCases } from './cases/receipts.js'
import { rootUserCases } from './cases/root-user.js'
import { snapshotCases } from './cases/snapshots.js'
import type { Case } from './subject.js'

/** Every promise, in the order in which a reader would ask for them. */
export const allCases: readonly Case[] = [
  ...bytesCases,
  ...programCases,
  ...endingCases,
  ...badInputCases,
  ...lifetimeCases,
  ...runLimitCases,
  ...cellLimitCases,
  ...diskAttackCases,
  ...processAttackCases,
  ...memoryAttackCases,
  ...accountingCases,
  ...receiptCases,
  ...snapshotCases,
  ...concurrencyCases,
  ...fileIsolationCases,
  ...inodeIsolationCases,
  ...networkIsolationCases,
  ...processIsolationCases,
  ...kernelIsolationCases,
  ...rootUserCases,
]
