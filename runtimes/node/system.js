// What the kernel uses of Node, taken before any code of the user runs, and used through the kernel's own realm: what the user replaces afterwards is not used.

const { apply } = Reflect

/** @param method of an object of the other realm, as a function that takes it first */
function uncurried(method) {
  return (self, ...values) => apply(method, self, values)
}

/** @param {{ process: any, require: (name: string) => any, global: any, compile: any, run: any }} host */
export function systemOf(host) {
  const fs = host.require('node:fs')
  const { read, readSync, writeSync, fstatSync, readdirSync } = fs
  const timers = host.require('node:timers')
  const { setTimeout, clearTimeout } = timers
  const { inspect, types } = host.require('node:util')
  const { Session } = host.require('node:inspector')
  const { Worker } = host.require('node:worker_threads')
  const { Writable } = host.require('node:stream')
  const { TextDecoder, TextEncoder, Buffer } = host.global
  const { process } = host
  const decode = uncurried(TextDecoder.prototype.decode)
  const encodeInto = uncurried(TextEncoder.prototype.encodeInto)
  const base64Slice = uncurried(Buffer.prototype.base64Slice)
  const decoder = new TextDecoder('utf-8', { ignoreBOM: true })
  const encoder = new TextEncoder()
  return {
    ...{ host, fs, read, readSync, writeSync, fstatSync, readdirSync, setTimeout, clearTimeout, inspect, types, Session, Worker, Writable, process },
    env: process.env,
    listenerCount: uncurried(process.listenerCount),
    on: uncurried(process.on),
    cwd: process.cwd.bind(process),
    chdir: process.chdir.bind(process),
    nextTick: process.nextTick.bind(process),
    end: process.reallyExit.bind(process),
    version: process.versions.node,
    global: host.global,
    compile: host.compile,
    utf8: (bytes) => decode(decoder, bytes),
    /** @param {string} text @returns {Uint8Array} */
    bytesOf(text) {
      const room = new Uint8Array(text.length * 3)
      return room.subarray(0, encodeInto(encoder, text, room).written)
    },
    bufferFrom: Buffer.from.bind(Buffer),
    base64: (bytes) => base64Slice(bytes, 0, byteLength(bytes)),
  }
}

const byteLengthOf = Object.getOwnPropertyDescriptor(Object.getPrototypeOf(Uint8Array.prototype), 'byteLength').get

/** Of a view of any realm, whatever was done to its prototypes. */
export function byteLength(view) {
  return apply(byteLengthOf, view, [])
}
