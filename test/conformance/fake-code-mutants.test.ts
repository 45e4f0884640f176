import { catchMutants } from './mutants/catch.js'
import { codeMutants } from './mutants/code-mutants.js'

catchMutants(codeMutants)
