/** Uses a template of the store it is told, says so, and waits to be killed. */
import { TemplateStore } from '../../../src/templates/store.js'

const [, , folder = '', name = ''] = process.argv
const store = new TemplateStore(folder)
const stored = store.find(name)
if (stored) store.hold(stored, 'd'.repeat(20))
process.stdout.write('held\n')
process.stdin.resume()
