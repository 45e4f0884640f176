/** How what is refused is told is the same at every door. */
export { printable } from '../contract/printable.js'
export { parseObject, parseWith } from '../contract/refusal.js'
