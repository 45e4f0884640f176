/** Home folders of this machine, as its accounts tell them. */
import { readdirSync, realpathSync, statSync, type Stats } from 'node:fs'
import { homedir } from 'node:os'
import { readAccounts } from './mount-source-owner.js'

const firstPersonId = 1000
const lastPersonId = 60_000

/** Of root, of whoever calls, and of the people that this machine knows. */
export function homeFolders(passwd: string): string[] {
  const people = peopleIn(passwd).map(({ home }) => home)
  const below = ['/home', '/var/home'].flatMap((folder) => namesIn(folder).map((name) => `${folder}/${name}`))
  const homes = ['/root', homedir(), ...people, ...below].filter((home) => home.startsWith('/') && home !== '/')
  return [...new Set(homes)]
}

/** Whether a folder is the home of this person by their account, whatever the environment says: no cell was ever given it, nor one that holds it. */
export function isHomeOf(uid: number, folder: Stats, passwd = readAccounts().passwd): boolean {
  return peopleIn(passwd)
    .filter((person) => person.uid === uid && person.home.startsWith('/'))
    .some(({ home }) => isAt(home, folder))
}

function isAt(path: string, folder: Stats): boolean {
  try {
    const status = statSync(path)
    return realpathSync(path) === path && status.dev === folder.dev && status.ino === folder.ino
  } catch {
    return false
  }
}

function peopleIn(passwd: string): { readonly uid: number; readonly home: string }[] {
  return passwd
    .split('\n')
    .map((line) => line.split(':'))
    .filter(([, , uid]) => uid === '0' || (Number(uid) >= firstPersonId && Number(uid) <= lastPersonId))
    .map((row) => ({ uid: Number(row[2]), home: row[5] ?? '' }))
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder)
  } catch {
    return []
  }
}
