/**
 * A real driver without isolation: the native warden runs on the host as whoever started it, in a temporary folder. It is there so that everything
 * above drivers can be tried in milliseconds and anywhere; it is never chosen unless asked for by name.
 */
import type { Cell, Driver, GuestUser, RunCounts } from '../../contract/driver.js'
import { SandboxError } from '../../contract/errors.js'
import { nativeProgram } from '../../sys/native.js'
import { processorTimeBelow } from '../../sys/processor-time.js'
import { type SpawnedProcess, spawnProcess } from '../../sys/spawn.js'
import { makeTempFolder, removeTree, sweepTempFolders } from '../../sys/temp-folder.js'
import { noWay, probeFake } from './probe.js'
import { Standstill } from './standstill.js'

const endingMs = 5000
const folderPrefix = 'glovebox-fake-'

export interface FakeDriverOptions {
  /** Another build of the warden. */
  readonly warden?: string
}

export function createFakeDriver(options: FakeDriverOptions = {}): Driver {
  let swept: Promise<void> | undefined
  const open = async (signal: AbortSignal): Promise<Cell> => {
    swept ??= sweepFakeCells()
    await swept
    return openFakeCell(options, signal)
  }
  return { name: 'fake', tier: 'none', probe: () => probeFake(open), open: (spec, signal) => (spec.network ? refuse() : open(signal)) }
}

/** Removes the folders of cells whose engine was killed. */
function sweepFakeCells(): Promise<void> {
  return sweepTempFolders(folderPrefix)
}

function refuse(): Promise<never> {
  return Promise.reject(new SandboxError('unsupported', `network is not available: ${noWay.why}`, { hint: 'glovebox doctor' }))
}

async function openFakeCell(options: FakeDriverOptions, signal: AbortSignal): Promise<Cell> {
  signal.throwIfAborted()
  const program = options.warden ?? nativeProgram('warden')
  const folder = await makeTempFolder(folderPrefix)
  try {
    signal.throwIfAborted()
    const warden = await spawnProcess([program, '--subreaper'], { cwd: folder, env: {} })
    const cell = fakeCell(warden, folder)
    if (signal.aborted) await cell.close()
    signal.throwIfAborted()
    return cell
  } catch (error) {
    await removeTree(folder)
    throw error
  }
}

function fakeCell(warden: SpawnedProcess, folder: string): Cell {
  let closing: Promise<void> | undefined
  const standstill = new Standstill(warden.pid)
  return {
    channel: warden.channel,
    users: [currentUser(folder)],
    workdir: folder,
    layers: [{ kind: 'folder', path: folder }],
    diagnosis: () => warden.diagnosis(),
    expects: [],
    beginRun: () => ({
      group: undefined,
      usage: () => nothingCounted,
      countFromNow: () => undefined,
      isPopulated: () => false,
      spareTime: () => undefined,
      close: () => Promise.resolve(),
    }),
    limit: () => Promise.resolve(),
    posture: () => Promise.resolve([]),
    usage: () => Promise.resolve({ ...nothingCounted, memoryBytes: undefined, processes: undefined }),
    worked: () => processorTimeBelow(warden.pid),
    pause: (besides) => standstill.begin(besides?.map(({ pid }) => pid)),
    resume: () => {
      standstill.end()
      return Promise.resolve()
    },
    close: () => {
      closing ??= closeFakeCell(warden, folder)
      return closing
    },
  }
}

const nothingCounted: RunCounts = {
  cpuMs: undefined,
  memoryPeakBytes: undefined,
  processesPeak: undefined,
  hits: { memory: undefined, processes: undefined },
}

function currentUser(home: string): GuestUser {
  return { name: 'user', uid: process.getuid?.() ?? 0, gid: process.getgid?.() ?? 0, home, capabilities: 0n }
}

/** The warden takes its programs with it when its channel ends. One of them may have stopped it: nothing here keeps them from that. */
async function closeFakeCell(warden: SpawnedProcess, folder: string): Promise<void> {
  warden.channel.on('error', () => undefined)
  warden.channel.destroy()
  warden.signal('SIGCONT')
  const timer = setTimeout(() => warden.signal('SIGKILL'), endingMs)
  await warden.wait()
  clearTimeout(timer)
  await removeTree(folder)
}
