import { catchMutants } from './mutants/catch.js'
import { engineMutants } from './mutants/table.js'

catchMutants(engineMutants)
