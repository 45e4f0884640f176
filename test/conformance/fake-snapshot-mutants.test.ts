import { catchMutants } from './mutants/catch.js'
import { snapshotMutants } from './mutants/snapshot-mutants.js'

catchMutants(snapshotMutants)
