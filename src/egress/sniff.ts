/** What a program speaks, by the first bytes that it sends. */
export type Speech = 'socks5' | 'socks4' | 'tls' | 'http' | 'other'

const longestMethod = 20

/** `'more'` when it cannot be told yet. */
export function sniff(bytes: Buffer): Speech | 'more' {
  const [first] = bytes
  if (first === undefined) return 'more'
  if (first === 0x05) return 'socks5'
  if (first === 0x04) return 'socks4'
  if (first === 0x16) return 'tls'
  return sniffHttp(bytes)
}

/** A method in capitals and a space. An empty line or two before it are allowed of old. */
function sniffHttp(bytes: Buffer): Speech | 'more' {
  const text = bytes.toString('latin1', 0, longestMethod + 8).replace(/^(?:\r\n)+/, '')
  if (text === '' || text === '\r') return bytes.length > longestMethod ? 'other' : 'more'
  if (text.startsWith('PRI ')) return 'other'
  if (/^[A-Z-]{1,20} /.test(text)) return 'http'
  return /^[A-Z-]{1,20}$/.test(text) ? 'more' : 'other'
}
