import type { Command } from 'commander'
import type { PolicyFlags } from './commands/policy.js'

const notes = `
A policy is a JSON file, or one of strict, default, data. The one that the
environment variable GLOVEBOX_POLICY names holds for every run here, whatever
run --policy says.`

/** `policy check`, `policy show`. */
export function addPolicy(program: Command, finish: (code: number) => void): void {
  const policy = program
    .command('policy')
    .summary('show policies, and what is risky about them')
    .description('Shows policies: what a sandbox gets where nothing is said, and what it may not\nexceed.')
    .usage('COMMAND [OPTIONS]')
    .helpOption('-h, --help', 'print this')
    .helpCommand(false)
    .addHelpText('after', notes)
  addCheck(policy, finish)
  addShow(policy, finish)
}

function addCheck(policy: Command, finish: (code: number) => void): void {
  policy
    .command('check')
    .summary('name every risky grant of a policy, and what it may cost')
    .description('Names every risky grant of a policy, and what it may cost.')
    .argument('<FILE>', 'the policy, or the name of a preset')
    .usage('[OPTIONS] FILE|PRESET')
    .option('--json', 'print one JSON object')
    .helpOption('-h, --help', 'print this')
    .addHelpText('after', '\nExit code: 0, 1 when a grant of severity high is among them, 125 when FILE is\nno policy.')
    .action(async (file: string, flags: PolicyFlags) => {
      const { checkPolicy } = await import('./commands/policy.js')
      finish(await checkPolicy(file, flags))
    })
}

function addShow(policy: Command, finish: (code: number) => void): void {
  policy
    .command('show')
    .summary('print a policy as it takes effect here')
    .description(
      'Prints a policy as it takes effect here, complete: with the preset it extends,\nour own defaults, and within what GLOVEBOX_POLICY allows. Without a name, the\npolicy of a run that names none.',
    )
    .argument('[FILE]', 'the policy, or the name of a preset')
    .usage('[OPTIONS] [FILE|PRESET]')
    .option('--json', 'print it on one line')
    .helpOption('-h, --help', 'print this')
    .action(async (file: string | undefined, flags: PolicyFlags) => {
      const { showPolicy } = await import('./commands/policy.js')
      finish(await showPolicy(file, flags))
    })
}
