/** Applies a change set: STORE ID. */
import { createChangeStore } from '../../../src/sys/changes-store.js'

const [place = '', id = ''] = process.argv.slice(2)
const store = createChangeStore(() => place)
await store.apply(await store.find(id))
