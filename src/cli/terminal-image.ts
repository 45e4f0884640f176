/** Pictures in a terminal that can show them. Which can is told by the environment: asking the terminal would take what is typed meanwhile for its answer. */

export type ImageProtocol = 'kitty' | 'iterm2'

type Environment = Readonly<Record<string, string | undefined>>

/** Undefined where nothing is known to show one. Behind tmux or screen nothing gets through. */
export function imageProtocol({ isTerminal, env }: { readonly isTerminal: boolean; readonly env: Environment }): ImageProtocol | undefined {
  const { TERM = '', TERM_PROGRAM = '' } = env
  if (!isTerminal || env.TMUX || env.STY || /^(?:screen|tmux|dumb)/.test(TERM)) return undefined
  if (env.KITTY_WINDOW_ID || TERM === 'xterm-kitty' || TERM === 'xterm-ghostty' || TERM_PROGRAM === 'ghostty') return 'kitty'
  if (TERM_PROGRAM === 'iTerm.app' || TERM_PROGRAM === 'WezTerm' || TERM_PROGRAM === 'mintty') return 'iterm2'
  return undefined
}

const pngSignature = Buffer.from('89504e470d0a1a0a', 'hex')
const jpegSignature = Buffer.from('ffd8ff', 'hex')
const kittyChunk = 4096
/** A larger one would hold the terminal up for seconds. */
const mostBytes = 8 * 2 ** 20

/** What has to be written for the picture to be shown; undefined when this protocol cannot show it. The bytes are a guest's, and are encoded here. */
export function inlineImage(bytes: Buffer, protocol: ImageProtocol): string | undefined {
  const isPng = bytes.subarray(0, 8).equals(pngSignature)
  if (bytes.length > mostBytes || (!isPng && !bytes.subarray(0, 3).equals(jpegSignature))) return undefined
  if (protocol === 'kitty') return isPng ? kitty(bytes.toString('base64')) : undefined
  return `\x1b]1337;File=inline=1;size=${bytes.length};preserveAspectRatio=1:${bytes.toString('base64')}\x07\n`
}

/** In pieces, each but the last saying that more follows. */
function kitty(encoded: string): string {
  const count = Math.ceil(encoded.length / kittyChunk)
  const pieces = Array.from({ length: count }, (_, index) => {
    const isMore = index < count - 1 ? 1 : 0
    const keys = index === 0 ? `a=T,f=100,q=2,m=${isMore}` : `m=${isMore}`
    return `\x1b_G${keys};${encoded.slice(index * kittyChunk, (index + 1) * kittyChunk)}\x1b\\`
  })
  return `${pieces.join('')}\n`
}
