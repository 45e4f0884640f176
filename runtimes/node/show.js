// A value as a MIME bundle.
import { boundedJson } from './json.js'
import { byteLength } from './system.js'

const signatures = [
  { type: 'image/png', bytes: [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a] },
  { type: 'image/jpeg', bytes: [0xff, 0xd8, 0xff] },
  { type: 'application/pdf', bytes: [0x25, 0x50, 0x44, 0x46, 0x2d] },
]

const methods = {
  _repr_html_: 'text/html',
  _repr_markdown_: 'text/markdown',
  _repr_svg_: 'image/svg+xml',
  _repr_png_: 'image/png',
  _repr_jpeg_: 'image/jpeg',
  _repr_pdf_: 'application/pdf',
  _repr_latex_: 'text/latex',
  _repr_json_: 'application/json',
  _repr_javascript_: 'application/javascript',
}

const shown = Symbol.for('glovebox.display')
/** What other kernels for notebooks ask for. */
const alsoShown = Symbol.for('Jupyter.display')

const isJson = (type) => type.endsWith('json')
const isBinary = (type) => signatures.some((signature) => signature.type === type)

/** @returns {Map<string, unknown>} types to what they are, before anything is encoded or cut; `text/plain` may be missing */
export function bundleOf(system, value) {
  const bundle = new Map()
  if (system.types.isProxy(value)) return bundle
  if (ArrayBuffer.isView(value)) addByteForm(bundle, value)
  else if (value !== null && (typeof value === 'object' || typeof value === 'function')) addForms(bundle, value)
  return bundle
}

/** @returns {Map<string, unknown>} of a value of which the type is told */
export function bundleAs(value, type) {
  return new Map([[type, value]])
}

function addByteForm(bundle, view) {
  const type = typeOf(view)
  if (type !== undefined) bundle.set(type, view)
}

function typeOf(view) {
  const bytes = new Uint8Array(view.buffer, view.byteOffset, Math.min(8, byteLength(view)))
  return signatures.find((signature) => signature.bytes.every((byte, index) => bytes[index] === byte))?.type
}

function addForms(bundle, value) {
  for (const key of [shown, alsoShown, '_repr_mimebundle_']) {
    const forms = formOf(value, key)
    if (typeof forms !== 'object' || forms === null) continue
    for (const [type, form] of Object.entries(forms)) if (type.includes('/') && form !== undefined && form !== null) bundle.set(type, form)
    return
  }
  for (const [name, type] of Object.entries(methods)) {
    const form = formOf(value, name)
    if (form !== undefined && form !== null) bundle.set(type, form)
  }
  const json = bundle.size === 0 && isPlain(value) ? jsonTypeOf(value) : undefined
  if (json !== undefined) bundle.set(json, value)
}

/** What a method of the value says; one that throws says nothing. */
function formOf(value, key) {
  try {
    return typeof value[key] === 'function' ? value[key]() : undefined
  } catch {
    return undefined
  }
}

/** An object literal or an array, whichever realm it is of. */
function isPlain(value) {
  if (Array.isArray(value)) return true
  if (typeof value !== 'object') return false
  const prototype = Object.getPrototypeOf(value)
  return prototype === null || (Object.getPrototypeOf(prototype) === null && Object.hasOwn(prototype, 'hasOwnProperty'))
}

/** Specifications of Vega and Vega-Lite say what they are. */
function jsonTypeOf(value) {
  const [, name, major] = /\/schema\/(vega|vega-lite)\/v(\d+)/.exec(String(Object.getOwnPropertyDescriptor(value, '$schema')?.value ?? '')) ?? []
  return name === undefined ? 'application/json' : `application/vnd.${name.replace('-', '')}.v${major}+json`
}

/**
 * What is sent: JSON of the members of `data`, within a number of bytes, and the types that were shortened or left out.
 * @returns {{ data: string, cut: string[] }}
 */
export function encodeBundle(system, bundle, { text, isCut, mostBytes }) {
  const cut = isCut ? ['text/plain'] : []
  const forms = [...bundle].filter(([type]) => type !== 'text/plain')
  // Where there is something better to look at, text leaves room for it.
  let left = mostBytes - 2
  const members = []
  const add = (type, json) => {
    const member = `${JSON.stringify(type)}:${json}`
    left -= sizeOf(system, member) + 1
    members.push(member)
  }
  addText({ system, type: 'text/plain', text, left: forms.length === 0 ? left : Math.floor(left / 2), add, cut })
  for (const [type, form] of forms) addForm({ system, type, form, left, add, cut })
  return { data: `{${members.join(',')}}`, cut: [...new Set(cut)] }
}

function addForm({ system, type, form, left, add, cut }) {
  const room = left - sizeOf(system, JSON.stringify(type)) - 2
  if (isBinary(type)) {
    const base64 = ArrayBuffer.isView(form) ? ((byteLength(form) * 4) / 3 + 6 > room ? undefined : system.base64(form)) : String(form)
    if (base64 !== undefined && base64.length + 2 <= room) add(type, JSON.stringify(base64.replace(/[^A-Za-z0-9+/=]/g, '')))
    else cut.push(type)
  } else if (isJson(type)) {
    const { json, why } = boundedJson(form, room)
    if (json !== undefined && sizeOf(system, json) <= room) add(type, json)
    else if (json !== undefined || why === 'cut') cut.push(type)
  } else if (type.startsWith('text/') || type === 'application/javascript') addText({ system, type, text: textOf(system, form), left, add, cut })
  else {
    const text = textOf(system, form)
    if (text.length <= room && sizeOf(system, JSON.stringify(text)) <= room) add(type, JSON.stringify(text))
    else cut.push(type)
  }
}

function textOf(system, form) {
  return ArrayBuffer.isView(form) ? system.utf8(form) : String(form)
}

function addText({ system, type, text, left, add, cut }) {
  const room = left - type.length - 6
  let short = text.length > room ? text.slice(0, Math.max(0, room)) : text
  let json = JSON.stringify(short)
  for (let size = sizeOf(system, json); size > room && short !== ''; size = sizeOf(system, json)) {
    short = short.slice(0, Math.max(0, Math.floor((short.length * room) / size) - 1))
    json = JSON.stringify(short)
  }
  if (short.length < text.length) {
    cut.push(type)
    // Never half of a character.
    if (/[\ud800-\udbff]$/.test(short)) json = JSON.stringify(short.slice(0, -1))
  }
  add(type, json)
}

function sizeOf(system, text) {
  return system.bytesOf(text).length
}
