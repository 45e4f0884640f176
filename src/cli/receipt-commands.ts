import type { Command } from 'commander'
import type { VerifyFlags } from './commands/receipt.js'

interface JsonFlag {
  readonly json?: true
}

const verifyNotes = `
Exit code: 0 when nothing in FILE was changed and it is signed by the key given
with --key or, without one, by this machine's own; otherwise 1.`

/** `receipt show`, `receipt verify`, `receipt key`. */
export function addReceipt(program: Command, finish: (code: number) => void): void {
  const receipt = program
    .command('receipt')
    .summary('show and verify the signed record of what was enforced')
    .description('Shows and verifies receipts: signed records of what was enforced, as written by\nrun --receipt FILE.')
    .usage('COMMAND [OPTIONS]')
    .helpOption('-h, --help', 'print this')
    .helpCommand(false)
  addShow(receipt, finish)
  addVerify(receipt, finish)
  addKey(receipt, finish)
}

function addShow(receipt: Command, finish: (code: number) => void): void {
  receipt
    .command('show')
    .summary('print a receipt as a page for people')
    .description('Prints a receipt as a page for people: what was demanded, what was enforced, and\nhow that is known.')
    .argument('<FILE>', 'the receipt')
    .usage('[OPTIONS] FILE')
    .option('--json', 'print one JSON object')
    .helpOption('-h, --help', 'print this')
    .addHelpText('after', '\nExit code: 0, or 1 when FILE was changed after it was signed.')
    .action(async (file: string, flags: JsonFlag) => {
      const { showReceipt } = await import('./commands/receipt.js')
      finish(await showReceipt(file, flags))
    })
}

function addVerify(receipt: Command, finish: (code: number) => void): void {
  receipt
    .command('verify')
    .summary('say whether a receipt is as it was signed, and by whom')
    .description('Says whether a receipt is as it was signed, and by whom.')
    .argument('<FILE>', 'the receipt')
    .usage('[OPTIONS] FILE')
    .option('--key <FILE>', "the signer's public key, as their receipt key printed it")
    .option('--json', 'print one JSON object')
    .helpOption('-h, --help', 'print this')
    .addHelpText('after', verifyNotes)
    .action(async (file: string, flags: VerifyFlags) => {
      const { verifyFile } = await import('./commands/receipt.js')
      finish(await verifyFile(file, flags))
    })
}

function addKey(receipt: Command, finish: (code: number) => void): void {
  receipt
    .command('key')
    .summary("print this machine's public key, for others to verify with")
    .description('Prints the public key of the one that signs receipts here, for others to verify\nthem with. It is made when there is none yet.')
    .usage('[OPTIONS]')
    .option('--json', 'print one JSON object')
    .helpOption('-h, --help', 'print this')
    .action(async (flags: JsonFlag) => {
      const { printKey } = await import('./commands/receipt.js')
      finish(await printKey(flags))
    })
}
