/** Sums of headers put right, so that what is changed in them is read at all. */
export function repaired(bytes: Uint8Array): Buffer {
  const archive = Buffer.from(bytes)
  for (let at = 0; at + 512 <= archive.length; ) {
    const block = archive.subarray(at, at + 512)
    if (block.every((byte) => byte === 0)) break
    const sum = block.reduce((total, byte, index) => total + (index >= 148 && index < 156 ? 32 : byte), 0)
    block.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148, 'latin1')
    const size = Number.parseInt(block.toString('latin1', 124, 135), 8)
    at += 512 + (Number.isSafeInteger(size) && size > 0 ? Math.ceil(size / 512) * 512 : 0)
  }
  return archive
}
