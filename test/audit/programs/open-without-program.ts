/** What is said on a machine that libsql has no program for. */
import { openSqlite } from '../../../src/sys/sqlite.js'

const [path = ''] = process.argv.slice(2)
try {
  await openSqlite(path, { schema: '' })
  console.log('opened')
} catch (error) {
  const { code, message, hint } = error as { code: string; message: string; hint: string }
  console.log(JSON.stringify({ code, message, hint }))
}
