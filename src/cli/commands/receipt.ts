import { createPublicKey, type KeyObject } from 'node:crypto'
import { open, stat, statfs } from 'node:fs/promises'
import { findReceiptKey, loadReceiptKey } from '../../compose.js'
import { SandboxError } from '../../contract/errors.js'
import { explainReceipt, keyIdOf, parseReceiptText, type Verification, verifyReceipt } from '../../receipt/index.js'
import { exitCodes } from '../exit-codes.js'
import { colorsFor, escapeControls, ownName, printJson } from '../print.js'
import { receiptPage } from '../receipt-page.js'
import { type Judgement, signatureInWords } from '../receipt-words.js'
import { writeOut } from '../streams.js'
import { wrap } from '../wrap.js'

export interface VerifyFlags {
  readonly key?: string
  readonly json?: true
}

const notValid = 1
const mostBytes = 64 * 2 ** 20

/** Prints a receipt as a page. Resolves to 1 when it was changed after it was signed. */
export async function showReceipt(file: string, flags: Pick<VerifyFlags, 'json'>): Promise<number> {
  const value = parseShown(file, await readInput(file))
  const judgement = judgeReceipt(value, await findReceiptKey().catch(() => undefined))
  // A changed receipt is shown only by what is wrong with it: a page of it would be believed.
  if (!judgement.valid) return verdict(file, judgement, flags)
  const { receipt, ...verification } = judgement
  if (flags.json) await printJson({ verification, unproven: explainReceipt(receipt), receipt })
  else await writeOut(receiptPage(judgement, colorsFor(process.stdout)))
  return exitCodes.ok
}

/** Says whether a receipt is as it was signed, and by whom. Resolves to 0 only when by someone we know. */
export async function verifyFile(file: string, flags: VerifyFlags): Promise<number> {
  const given = flags.key === undefined ? undefined : await readPublicKey(flags.key)
  const bytes = await readInput(file)
  const judgement = judgeText(bytes, given ? { given } : { own: await findReceiptKey() })
  return verdict(file, judgement, flags)
}

/** Prints the public key of this machine, which is made when there is none. */
export async function printKey(flags: Pick<VerifyFlags, 'json'>): Promise<number> {
  const { publicKey } = await loadReceiptKey()
  const pem = publicKey.export({ type: 'spki', format: 'pem' }).toString()
  if (flags.json) await printJson({ keyId: keyIdOf(publicKey), publicKey: pem })
  else await writeOut(pem)
  return exitCodes.ok
}

async function verdict(file: string, judgement: Judgement, flags: Pick<VerifyFlags, 'json'>): Promise<number> {
  const isTrusted = judgement.valid && judgement.trusted
  if (flags.json) {
    const { receipt: _, ...told } = judgement.valid ? judgement : { ...judgement, receipt: undefined }
    await printJson({ trusted: false, ...told })
  } else {
    const colors = colorsFor(process.stdout)
    const { text, hint } = signatureInWords(judgement)
    const lines = [`${isTrusted ? colors.green('✓') : colors.red('✗')} ${wrap(escapeControls(`${file} ${text}`), 2)}`]
    if (hint !== undefined) lines.push(`${colors.cyan('hint:')} ${escapeControls(`${ownName()} ${hint} ${file}`)}`)
    await writeOut(`${lines.join('\n')}\n`)
  }
  return isTrusted ? exitCodes.ok : notValid
}

function judgeText(bytes: Uint8Array, keys: { readonly given?: KeyObject | undefined; readonly own?: KeyObject | undefined }): Judgement {
  try {
    const value = parseReceiptText(bytes)
    return keys.given ? named(verifyReceipt(value, { publicKey: keys.given }), 'the key given') : judgeReceipt(value, keys.own)
  } catch (error) {
    if (!(error instanceof SandboxError)) throw error
    return { valid: false, why: error.message }
  }
}

/** By our own key, or by one that we do not know. */
function judgeReceipt(value: unknown, own: KeyObject | undefined): Judgement {
  const alone = verifyReceipt(value)
  if (!alone.valid || !own) return alone
  const ours = verifyReceipt(value, { publicKey: own })
  return ours.valid ? named(ours, "this machine's key") : alone
}

function named(verification: Verification, by: string): Judgement {
  return verification.valid ? { ...verification, by } : verification
}

function parseShown(file: string, bytes: Uint8Array): unknown {
  try {
    return parseReceiptText(bytes)
  } catch (error) {
    throw error instanceof SandboxError ? new SandboxError('invalid', `${file}: ${error.message}`, { hint: 'glovebox receipt --help' }) : error
  }
}

async function readPublicKey(file: string): Promise<KeyObject> {
  if (file === '') throw new SandboxError('invalid', '--key: must not be empty; expected the path of a public key', { hint: 'glovebox receipt key > key.pem' })
  const bytes = await readInput(file)
  try {
    const key = createPublicKey(bytes)
    if (key.asymmetricKeyType === 'ed25519') return key
  } catch {
    // Said below, whatever it is.
  }
  throw new SandboxError('invalid', `--key: ${file} holds no Ed25519 public key`, { hint: 'glovebox receipt key > key.pem' })
}

/** Also what is no plain file, such as `<(curl …)`. */
async function readInput(file: string): Promise<Buffer> {
  try {
    await refuseWaiting(file)
    await using handle = await open(file)
    const chunks: Buffer[] = []
    let length = 0
    for await (const chunk of handle.createReadStream({ autoClose: false, end: mostBytes })) {
      chunks.push(chunk as Buffer)
      length += (chunk as Buffer).length
    }
    if (length > mostBytes) throw new SandboxError('invalid', `${file}: is larger than any receipt`, { hint: `ls -l ${file}` })
    return Buffer.concat(chunks)
  } catch (error) {
    if (error instanceof SandboxError) throw error
    const { code = String(error) } = error as NodeJS.ErrnoException
    throw new SandboxError('invalid', `${file}: ${code === 'ENOENT' ? 'there is no such file' : `cannot be read (${code})`}`, {
      hint: `ls -l ${file}`,
      cause: error,
    })
  }
}

/** The kernel's own filesystem for pipes that have no name, by its magic number: there somebody is at the other end already. */
const namelessPipes = 0x50495045

/** The writer of a pipe with a name may never come. */
async function refuseWaiting(file: string): Promise<void> {
  if (!(await stat(file)).isFIFO() || (await statfs(file)).type === namelessPipes) return
  throw new SandboxError('invalid', `${file}: is a pipe with a name, not a file`, { hint: `ls -l ${file}` })
}
