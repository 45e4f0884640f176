/**
 * The promises of a sandbox as cases: run them against a driver, an engine or a client, with any test runner or none.
 * They attack the subject and look at it from outside; what the subject does not claim is skipped with its own reason.
 */
export { allCases } from './all-cases.js'
export { CaseFailure } from './check.js'
export { leftoversOf } from './leftovers.js'
export type { CaseResult, RunCasesOptions } from './run-cases.js'
export { runCases } from './run-cases.js'
export type {
  Canaries,
  Case,
  Depth,
  HostProcess,
  HostSnapshot,
  HostView,
  Listener,
  Need,
  Subject,
  SubjectCode,
  SubjectLined,
  SubjectProcess,
  SubjectResult,
  SubjectRunOptions,
  SubjectSandbox,
  SubjectStartOptions,
} from './subject.js'
