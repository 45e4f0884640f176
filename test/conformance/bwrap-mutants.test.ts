import { catchMutants } from './mutants/catch.js'
import { wallMutants } from './mutants/table.js'

catchMutants(wallMutants)
