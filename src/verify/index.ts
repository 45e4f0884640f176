/** Where the cases of the conformance room meet this machine: the host as it is seen from outside, sandboxes of a platform, and the report. */
export { isMountOfOthers } from './host-lists.js'
export { createHostView, stateFolders } from './host-view.js'
export { renderHtml } from './html.js'
export { createPlatformSubject } from './platform-subject.js'
export type { CaseReport, CheckReport, Column, DriverReport, VerifyReport } from './report.js'
export { cellOf, columnsOf } from './report.js'
export { askServer, listeningAt, talk } from './server-talk.js'
export { everyCase, verify, type VerifyOptions, type VerifyProgress } from './verify.js'
