#!/usr/bin/env node
// Holds src to the table of rooms: node scripts/checks/layers.mjs [folder that contains src]
import { builtinModules } from 'node:module'
import { join, normalize, posix } from 'node:path'
import { pathToFileURL } from 'node:url'
import ts from 'typescript'
import { emptyNames, rooms } from './rooms.mjs'
import { filesBelow, readText, report } from './tree.mjs'

/** The room of a path below src, or undefined for a stranger. @param {string} path */
export function roomOf(path) {
  const parts = path.split('/')
  const [first = '', second = ''] = parts
  if (parts.length === 1) return first in rooms ? first : undefined
  if (first in rooms) return first
  return parts.length > 2 && `${first}/*` in rooms ? `${first}/${second}` : undefined
}

/** @param {string} room */
function rulesOf(room) {
  return rooms[room] ?? rooms[`${room.split('/')[0]}/*`]
}

/** @param {string} specifier @param {string} room */
function packageProblem(specifier, room) {
  const rules = rulesOf(room)
  const isNode = specifier.startsWith('node:') || builtinModules.includes(specifier)
  if (isNode) {
    if (!specifier.startsWith('node:')) return `imports '${specifier}'; write 'node:${specifier}'`
    return rules?.node === '*' || rules?.node?.includes(specifier) ? undefined : `room ${room} may not import ${specifier}`
  }
  const name = specifier
    .split('/')
    .slice(0, specifier.startsWith('@') ? 2 : 1)
    .join('/')
  return rules?.packages?.includes(name) ? undefined : `room ${room} may not import the package ${name}`
}

/** @param {string} specifier @param {string} path @param {string} room */
function importProblem(specifier, path, room) {
  if (!specifier.startsWith('.')) return packageProblem(specifier, room)
  const target = posix.join(posix.dirname(path), specifier)
  if (target.startsWith('..')) return `imports ${specifier}, which is outside src`
  const targetRoom = roomOf(target.replace(/\.js$/, '.ts'))
  if (targetRoom === undefined) return `imports ${specifier}, which is in no room`
  const allowed = rulesOf(room)?.rooms ?? []
  if (targetRoom === room || allowed === '*' || allowed.includes(targetRoom)) return undefined
  return `room ${room} may not import room ${targetRoom} (${specifier})`
}

/** @param {string} path */
function nameProblem(path) {
  const empty = path.split('/').find((part) => emptyNames.includes(part.replace(/\.ts$/, '')))
  return empty === undefined ? undefined : `'${empty}' says nothing about what is inside`
}

/** @param {string} root @returns {string[]} */
export function layerProblems(root) {
  const source = join(root, 'src')
  return filesBelow(source).flatMap((path) => {
    const room = roomOf(path)
    const named = nameProblem(path)
    if (named !== undefined) return [`src/${path}: ${named}`]
    if (room === undefined) return [`src/${path}: is in no room of scripts/checks/rooms.mjs`]
    if (!path.endsWith('.ts')) return []
    const { importedFiles } = ts.preProcessFile(readText(join(source, path)), true, true)
    return importedFiles.flatMap(({ fileName }) => {
      const problem = importProblem(fileName, normalize(path), room)
      return problem === undefined ? [] : [`src/${path}: ${problem}`]
    })
  })
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) report(layerProblems(process.argv[2] ?? '.'))
