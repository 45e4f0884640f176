// A vitest reporter that writes what the last table needs: counts, each failure with its message, each skip with its reason.
import { writeFileSync } from 'node:fs'

/**
 * @typedef {{ name: string, message: string }} Failure
 * @typedef {{ name: string, reason: string }} Skip
 * @typedef {{ passed: number, failures: Failure[], skips: Skip[] }} Report
 */

/** @param {{ message: string, stack?: string | undefined }} error */
function describe(error) {
  const places = (error.stack ?? '').split('\n').filter((line) => /^\s+at /.test(line))
  return [error.message, ...places].join('\n')
}

// vitest takes a reporter by its default export.
export default class SuiteReporter {
  /** @param {readonly import('vitest/node').TestModule[]} modules @param {readonly import('vitest').SerializedError[]} unhandled */
  onTestRunEnd(modules, unhandled) {
    /** @type {Report} */
    const report = { passed: 0, failures: unhandled.map((error) => ({ name: 'an error outside every test', message: describe(error) })), skips: [] }
    for (const module of modules) {
      const suites = [module, ...module.children.allSuites()]
      for (const suite of suites) for (const error of suite.errors()) report.failures.push({ name: module.relativeModuleId, message: describe(error) })
      for (const test of module.children.allTests()) this.#add(report, test, `${module.relativeModuleId} > ${test.fullName}`)
    }
    const path = process.env['GLOVEBOX_TEST_REPORT']
    if (path !== undefined) writeFileSync(path, JSON.stringify(report))
  }

  /** @param {Report} report @param {import('vitest/node').TestCase} test @param {string} name */
  #add(report, test, name) {
    const result = test.result()
    if (result.state === 'passed') report.passed++
    else if (result.state === 'skipped') report.skips.push({ name, reason: result.note ?? 'no reason was given' })
    else report.failures.push({ name, message: result.state === 'failed' ? result.errors.map(describe).join('\n') : 'did not run' })
  }
}
