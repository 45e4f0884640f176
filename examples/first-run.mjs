import { Sandbox } from 'glovebox'

const sandbox = await Sandbox.create({ template: 'python' })
const { outcome, stdout } = await sandbox.run(['python3', '-c', 'print(6 * 7)'])
console.log(outcome, stdout)
await sandbox.close()
