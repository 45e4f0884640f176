import { catchMutants } from './mutants/catch.js'
import { wardenMutants } from './mutants/table.js'

catchMutants(wardenMutants)
