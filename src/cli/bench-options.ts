import type { Command } from 'commander'
import type { BenchFlags } from './commands/bench.js'

interface Called {
  readonly finish: (code: number) => void
  readonly version: () => string
}

const notes = `
Sections: cold, one-shot, prepared, sustained, warm, code, egress, idle; and
many, which makes a thousand sandboxes and is measured only when it is named.

Exit code: 0 when every goal that could be measured was met, 1 when one was
missed.`

/** `glovebox bench`. */
export function addBench(program: Command, { finish, version }: Called): void {
  program
    .command('bench')
    .summary('measure what a sandbox costs here, beside a plain spawn')
    .description('Measures what sandboxes cost on this machine, beside a plain spawn of python3\nand bare bwrap, in one run, in turns.')
    .usage('[OPTIONS]')
    .option('--only <SECTION>', 'measure this section only; may be repeated', (each: string, before: readonly string[] | undefined) => [
      ...(before ?? []),
      each,
    ])
    .option('--rounds <N>', 'samples of each (20)')
    .option('--out <DIR>', 'write bench.json, bench.md and bench.svg there')
    .option('--json', 'print one JSON object')
    .helpOption('-h, --help', 'print this')
    .addHelpText('after', notes)
    .action(async (flags: BenchFlags) => {
      const { bench } = await import('./commands/bench.js')
      finish(await bench(flags, version()))
    })
}
