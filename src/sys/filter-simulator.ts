/** Runs a seccomp program the way the kernel would: for calls that have not been made yet, or that this machine cannot make. */

export const ARCH = { x86_64: 0xc000003e, i386: 0x40000003, aarch64: 0xc00000b7 } as const

interface SimulatedCall {
  readonly arch: number
  readonly number: number
  readonly args?: readonly bigint[]
}

type Verdict = 'allow' | 'log' | 'trap' | 'kill-process' | 'kill-thread' | `errno:${number}`

/** seccomp_data: the number, the architecture, the instruction pointer, six arguments. */
function recordOf(call: SimulatedCall): DataView {
  const view = new DataView(new ArrayBuffer(64))
  view.setUint32(0, call.number >>> 0, true)
  view.setUint32(4, call.arch, true)
  for (const [index, value] of (call.args ?? []).entries()) view.setBigUint64(16 + index * 8, BigInt.asUintN(64, value), true)
  return view
}

function verdictOf(value: number): Verdict {
  switch ((value & 0xffff0000) >>> 0) {
    case 0x7fff0000:
      return 'allow'
    case 0x7ffc0000:
      return 'log'
    case 0x00050000:
      return `errno:${value & 0xffff}`
    case 0x00030000:
      return 'trap'
    case 0x80000000:
      return 'kill-process'
    case 0:
      return 'kill-thread'
  }
  throw new Error(`unknown answer 0x${value.toString(16)}`)
}

const BPF = { LD_W_ABS: 0x20, RET_K: 0x06, JA: 0x05, JEQ_K: 0x15, JGT_K: 0x25, JGE_K: 0x35, JSET_K: 0x45, AND_K: 0x54 } as const

export function simulate(program: Uint8Array, call: SimulatedCall): Verdict {
  const code = new DataView(program.buffer, program.byteOffset, program.byteLength)
  const record = recordOf(call)
  let accumulator = 0
  for (let at = 0; at * 8 < program.length; at++) {
    const k = code.getUint32(at * 8 + 4, true)
    const [taken, otherwise] = [code.getUint8(at * 8 + 2), code.getUint8(at * 8 + 3)]
    const opcode = code.getUint16(at * 8, true)
    switch (opcode) {
      case BPF.LD_W_ABS:
        accumulator = record.getUint32(k, true)
        break
      case BPF.AND_K:
        accumulator = (accumulator & k) >>> 0
        break
      case BPF.JA:
        at += k
        break
      case BPF.JEQ_K:
        at += accumulator === k ? taken : otherwise
        break
      case BPF.JGT_K:
        at += accumulator > k ? taken : otherwise
        break
      case BPF.JGE_K:
        at += accumulator >= k ? taken : otherwise
        break
      case BPF.JSET_K:
        at += (accumulator & k) !== 0 ? taken : otherwise
        break
      case BPF.RET_K:
        return verdictOf(k)
      default:
        throw new Error(`unknown instruction 0x${opcode.toString(16)} at ${at}`)
    }
  }
  throw new Error('the program ran off its end')
}
