import { reworded, SandboxError } from '../contract/errors.js'

/** What is wrong with what a command was given ends with that command's own help, where whoever threw knew no better. */
export async function withHelp(command: string, act: () => Promise<number>): Promise<number> {
  try {
    return await act()
  } catch (error) {
    if (error instanceof SandboxError && error.code === 'invalid' && error.hint === undefined)
      throw reworded(error, error.message, `glovebox ${command} --help`)
    throw error
  }
}
