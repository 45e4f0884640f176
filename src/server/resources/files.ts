import type { Change } from '../../contract/snapshots.js'
import type { Entry, FileCalls, FilePath, OpenFile } from '../../contract/files.js'
import { toBase64 } from '../../contract/wire/frames.js'
import { media, wireHeaders } from '../../contract/wire/media.js'
import { type Answer, events, json, type WireEvent } from '../answers.js'
import type { Call, Handlers } from '../call.js'
import type { Desk } from '../desk.js'
import { HttpError } from '../http-error.js'
import { leaving } from '../leaving.js'
import { pageOfStream } from '../pages.js'

type Names =
  | 'files.list'
  | 'files.remove'
  | 'files.read'
  | 'files.write'
  | 'files.stat'
  | 'files.mkdir'
  | 'files.move'
  | 'files.copy'
  | 'files.symlink'
  | 'files.chmod'
  | 'files.search'
  | 'files.watch'
  | 'files.pack'
  | 'files.unpack'

type FileCall = Pick<Call, 'platform' | 'signal'> & { readonly params: { readonly id: string } }

function filesOf({ platform, params }: FileCall): FileCalls {
  return platform.files.of(params.id)
}

interface PathQuery {
  readonly path?: string | undefined
  readonly pathBase64?: Uint8Array | undefined
}

/** Which path is meant; and what else was said, without what was not. */
function apart<Query extends PathQuery>({ path, pathBase64, ...rest }: Query): readonly [FilePath, Stated<Omit<Query, keyof PathQuery>>] {
  const found = path ?? pathBase64
  if (found === undefined || (path !== undefined && pathBase64 !== undefined)) throw new HttpError(400, 'path: must be given, as path or as pathBase64')
  return [found, stated(rest)]
}

type Stated<Value> = { [Key in keyof Value]?: Exclude<Value[Key], undefined> }

function stated<Value extends object>(value: Value): Stated<Value> {
  return Object.fromEntries(Object.entries(value).filter(([, each]) => each !== undefined)) as Stated<Value>
}

/** As it travels: bytes of a path as base64; times as ISO 8601, which dates become by themselves. */
export function inJson<Item extends { readonly pathBytes?: Uint8Array }>({ pathBytes, ...rest }: Item): Omit<Item, 'pathBytes'> & { pathBase64?: string } {
  return { ...rest, ...(pathBytes && { pathBase64: toBase64(pathBytes) }) }
}

export function changeInJson(change: Change): Record<string, unknown> {
  return inJson(change)
}

type MovingNames = 'files.move' | 'files.copy' | 'files.symlink' | 'files.chmod' | 'files.mkdir'
type StreamedNames = 'files.list' | 'files.read' | 'files.watch' | 'files.pack'

export function fileHandlers(desk: Desk): Handlers<Names> {
  return { ...changingHandlers(desk), ...streamedHandlers, ...contentHandlers(desk) }
}

const streamedHandlers: Handlers<StreamedNames> = {
  'files.list': async (call) => {
    const { limit, cursor, ...query } = call.query
    const [path, options] = apart(query)
    const found = filesOf(call).list(path, { ...options, signal: call.signal })
    if (call.stream !== undefined) return events(await begun(found, call.gone))
    const page = await pageOfStream(found, { limit, cursor }, (entry) => entry.path)
    return json({ ...page, items: page.items.map((entry) => inJson(entry)) })
  },
  'files.read': (call) => read(call),
  'files.watch': async (call) => {
    const [path, options] = apart(call.query)
    return events((await filesOf(call).watch(path, { ...options, signal: call.signal })) as AsyncIterable<never>)
  },
  'files.pack': async (call) => {
    const [path, options] = apart(call.query)
    return download(await filesOf(call).pack(path, { ...options, signal: call.signal }), media.tar)
  },
}

function contentHandlers(desk: Desk): Handlers<Exclude<Names, StreamedNames | MovingNames>> {
  return {
    'files.remove': async (call) => {
      const [path, options] = apart(call.query)
      return json({ removed: await filesOf(call).remove(path, { ...options, signal: call.signal }) })
    },
    'files.write': async (call) => {
      const [path, options] = apart(call.query)
      desk.checkMode(options.mode)
      return json(inJson(await filesOf(call).write(path, call.pieces, { ...options, signal: call.signal })))
    },
    'files.stat': async (call) => {
      const [path, options] = apart(call.query)
      const entry = await filesOf(call).stat(path, { ...options, signal: call.signal })
      return json({ entry: entry && inJson(entry) })
    },
    'files.search': async (call) => {
      const { path, pattern, ...options } = call.body
      const { matches, ...rest } = await filesOf(call).search(path, pattern, { ...stated(options), signal: call.signal })
      return json({ ...rest, matches: matches.map((match) => inJson(match)) })
    },
    'files.unpack': async (call) => {
      const [path, options] = apart(call.query)
      return json({ entries: await filesOf(call).unpack(path, call.pieces, { ...options, signal: call.signal }) })
    },
  }
}

function changingHandlers(desk: Desk): Handlers<MovingNames> {
  return {
    'files.mkdir': async (call) => {
      const { path, ...options } = call.body
      desk.checkMode(options.mode)
      return json(inJson(await filesOf(call).mkdir(path, { ...stated(options), signal: call.signal })))
    },
    'files.move': async (call) => {
      const { from, to, ...options } = call.body
      return json(inJson(await filesOf(call).move(from, to, { ...stated(options), signal: call.signal })))
    },
    'files.copy': async (call) => {
      const { from, to, ...options } = call.body
      return json(inJson(await filesOf(call).copy(from, to, { ...stated(options), signal: call.signal })))
    },
    'files.symlink': async (call) => {
      const { target, path, ...options } = call.body
      return json(inJson(await filesOf(call).symlink(target, path, { ...stated(options), signal: call.signal })))
    },
    'files.chmod': async (call) => {
      const { path, mode, ...options } = call.body
      desk.checkMode(mode)
      return json(inJson(await filesOf(call).chmod(path, mode, { ...stated(options), signal: call.signal })))
    },
  }
}

/** What a guest wrote is nothing that a browser may show as a page of ours. */
export function download(bytes: AsyncIterable<Uint8Array>, type: string, headers: Readonly<Record<string, string>> = {}): Answer {
  const harmless = { 'content-disposition': 'attachment', 'content-security-policy': "sandbox; default-src 'none'" }
  return { kind: 'bytes', bytes, headers: { 'content-type': type, ...harmless, ...headers } }
}

/** The first item is waited for, so that what is wrong is told by the status. */
async function begun(found: AsyncIterable<Entry>, gone: AbortSignal): Promise<AsyncIterable<WireEvent>> {
  const entries = leaving(found, gone)
  const first = await entries.next()
  return {
    async *[Symbol.asyncIterator]() {
      if (first.done) return
      yield inJson(first.value)
      for await (const entry of entries) yield inJson(entry)
    },
  }
}

async function read(call: Call<'files.read'>): Promise<Answer> {
  const { offset, length, ...query } = call.query
  const [path, options] = apart(query)
  const { range } = call.request.headers
  if (range !== undefined) return readRange(call, { path, options, range })
  const open = await filesOf(call).read(path, { ...options, ...stated({ offset, length }), signal: call.signal })
  return download(open.bytes, media.bytes, entryHeader(open))
}

function entryHeader({ entry }: OpenFile): Record<string, string> {
  return { [wireHeaders.entry]: Buffer.from(JSON.stringify(inJson(entry))).toString('base64') }
}

interface Ranged {
  readonly path: FilePath
  readonly options: { readonly user?: 'user' | 'root' }
  readonly range: string
}

/** One range of bytes, as HTTP has it. */
async function readRange(call: Call<'files.read'>, { path, options, range }: Ranged): Promise<Answer> {
  const files = filesOf(call)
  const { signal } = call
  const [, from = '', to = ''] = /^bytes=(\d{0,15})-(\d{0,15})$/.exec(range) ?? []
  if (from === '' && to === '') throw new HttpError(416, 'range: expected one range of bytes, such as bytes=0-99')
  const size = (await files.stat(path, { ...options, signal }))?.size ?? 0
  const start = from === '' ? Math.max(0, size - Number(to)) : Number(from)
  const end = from === '' || to === '' ? size - 1 : Math.min(Number(to), size - 1)
  if (start > end) throw new HttpError(416, `range: the file has ${size} bytes`)
  const open = await files.read(path, { ...options, offset: start, length: end - start + 1, signal })
  const headers = { ...entryHeader(open), 'content-range': `bytes ${start}-${end}/${size}`, 'accept-ranges': 'bytes' }
  return { ...download(open.bytes, media.bytes, headers), status: 206 } as Answer
}
