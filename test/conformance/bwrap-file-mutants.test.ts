import { catchMutants } from './mutants/catch.js'
import { fileMutants } from './mutants/file-mutants.js'

catchMutants(fileMutants)
