// A failure beside thousands of other tests on two busy cores may be one of the machine's. The files it is in are run once more, alone: what fails again
// has failed, what passes is printed as unsteady, to be mended. A wall is never given a second chance: one hole in two attempts is a hole.

/**
 * @typedef {import('./suites.mjs').SuiteResult} SuiteResult
 * @typedef {SuiteResult['failures'][number]} Failure
 */

const mostFiles = 3
const walls = /isolation|attack|escape|contain|leak|limits|mutant|hostile/i

/** @param {Failure} failure */
function fileOf({ name }) {
  return /^(test\/\S+\.test\.ts)(?: > |$)/.exec(name)?.[1]
}

/**
 * The files to be run again; none where too much failed for it to be chance, or what failed may not.
 * @param {readonly Failure[]} failures @returns {string[]}
 */
export function filesToRepeat(failures) {
  const files = new Set(failures.map(fileOf))
  const excusable = failures.every(({ name }) => !walls.test(name))
  return excusable && files.size <= mostFiles && !files.has(undefined) ? /** @type {string[]} */ ([...files]) : []
}

/** What both attempts together say. @param {SuiteResult} first @param {SuiteResult} second @returns {SuiteResult} */
export function afterRepeating(first, second) {
  const again = new Set(second.failures.map(({ name }) => name))
  const unsteady = first.failures.filter(({ name }) => !again.has(name))
  return {
    ...first,
    passed: first.passed + unsteady.length,
    failures: second.failures,
    unsteady,
    seconds: first.seconds + second.seconds,
    output: second.output,
  }
}

/**
 * @param {SuiteResult} first
 * @param {(files: string[]) => Promise<SuiteResult>} repeat
 * @returns {Promise<SuiteResult>}
 */
export async function repeatUnsteady(first, repeat) {
  const files = filesToRepeat(first.failures)
  return files.length === 0 ? first : afterRepeating(first, await repeat(files))
}
