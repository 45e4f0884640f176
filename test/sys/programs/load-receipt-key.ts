/** Waits for a line, so that several start at the same moment; then prints the public key it found or made. */
import { once } from 'node:events'
import { loadReceiptKey } from '../../../src/sys/receipt-key.js'

const [folder] = process.argv.slice(2) as [string]
process.stdout.write('ready\n')
await once(process.stdin, 'data')
const { publicKey } = await loadReceiptKey({ folder })
process.stdout.write(publicKey.export({ type: 'spki', format: 'pem' }))
process.exit(0)
