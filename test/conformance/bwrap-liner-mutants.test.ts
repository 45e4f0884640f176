import { catchMutants } from './mutants/catch.js'
import { linerMutants } from './mutants/liner-mutants.js'

catchMutants(linerMutants)
