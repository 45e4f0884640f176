import { accountingCases } from './cases/accounting.js'
import { diskAttackCases } from './cases/attacks-disk.js'
import { memoryAttackCases } from './cases/attacks-memory.js'
import { processAttackCases } from './cases/attacks-processes.js'
import { badInputCases } from './cases/bad-input.js'
import { bytesCases } from './cases/bytes.js'
import { codeCases } from './cases/code.js'
import { codeAttackCases } from './cases/code-attacks.js'
import { concurrencyCases } from './cases/concurrency.js'
import { endingCases } from './cases/endings.js'
import { fileCases } from './cases/files.js'
import { fileFaultCases } from './cases/files-faults.js'
import { filePathCases } from './cases/files-paths.js'
import { fileIsolationCases } from './cases/isolation-files.js'
import { inodeIsolationCases } from './cases/isolation-inodes.js'
import { kernelIsolationCases } from './cases/isolation-kernel.js'
import { networkIsolationCases } from './cases/isolation-network.js'
import { networkOffCases } from './cases/network-off.js'
import { processIsolationCases } from './cases/isolation-processes.js'
import { lifetimeCases } from './cases/lifetime.js'
import { pauseCases } from './cases/lifetime-pause.js'
import { cellLimitCases } from './cases/limits-cell.js'
import { runLimitCases } from './cases/limits-run.js'
import { linerCases } from './cases/liners.js'
import { poolCases } from './cases/pools.js'
import { portCases } from './cases/ports.js'
import { processCases } from './cases/processes.js'
import { programCases } from './cases/programs.js'
import { receiptCases } from './cases/receipts.js'
import { rootUserCases } from './cases/root-user.js'
import { snapshotCases } from './cases/snapshots.js'
import { overlaySnapshotCases } from './cases/snapshots-overlay.js'
import { terminalCases } from './cases/terminals.js'
import type { Case } from './subject.js'

/** Every promise, in the order in which a reader would ask for them. */
export const allCases: readonly Case[] = [
  ...bytesCases,
  ...programCases,
  ...endingCases,
  ...badInputCases,
  ...lifetimeCases,
  ...processCases,
  ...terminalCases,
  ...pauseCases,
  ...runLimitCases,
  ...cellLimitCases,
  ...diskAttackCases,
  ...processAttackCases,
  ...memoryAttackCases,
  ...accountingCases,
  ...receiptCases,
  ...portCases,
  ...codeCases,
  ...codeAttackCases,
  ...snapshotCases,
  ...overlaySnapshotCases,
  ...concurrencyCases,
  ...poolCases,
  ...fileCases,
  ...filePathCases,
  ...fileFaultCases,
  ...fileIsolationCases,
  ...inodeIsolationCases,
  ...networkIsolationCases,
  ...networkOffCases,
  ...processIsolationCases,
  ...kernelIsolationCases,
  ...rootUserCases,
  ...linerCases,
]
