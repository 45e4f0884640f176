/**
 * The promises of a sandbox as cases: run them against a driver, an engine or a client, with any test runner or none.
 * They attack the subject and look at it from outside; what the subject does not claim is skipped with its own reason.
 */
export { allCases } from './all-cases.js'
export { CaseFailure } from './check.js'
export { containmentCases } from './containment/all.js'
export type { ContainmentCase, ContainmentGroup, HostCase, Invariants, Place, Purpose } from './containment/containment.js'
export { containmentGroups, places } from './containment/containment.js'
export { changesIn, hostCases } from './containment/host.js'
export { lackOfPlace, runContainment } from './containment/run-containment.js'
export { runServerCases } from './containment/run-server-cases.js'
export { serverCases } from './containment/server.js'
export type { ServerAnswer, ServerCase, ServerRequest, ServerView, TenantView } from './containment/server-view.js'
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
  InvariantKind,
  Listener,
  Need,
  ProcessChoice,
  Subject,
  SubjectCode,
  SubjectLined,
  SubjectProcess,
  SubjectResult,
  SubjectRunOptions,
  SubjectSandbox,
  SubjectStartOptions,
  ThreadFacts,
} from './subject.js'
