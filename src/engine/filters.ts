import type { Spec } from '../contract/spec.js'

/** For whom a filter is. */
export interface FilterGuest {
  /** Such as CAP_CHOWN: rules of a profile may depend on them. */
  readonly capabilities: readonly string[]
  /** Where only some programs may be executed: no file is made that has no name, because no file rule speaks of those. */
  readonly withoutNamelessFiles: boolean
}

export type FilterSource = (profile: Spec['seccomp'], guest: FilterGuest) => Promise<Uint8Array>

/** Compiled filters for guests. The default profile's are kept once they are there, and asked for again when they could not be had. */
export class Filters {
  readonly #source: FilterSource
  readonly #kept = new Map<string, Promise<Uint8Array>>()

  constructor(source: FilterSource) {
    this.#source = source
  }

  of({ seccomp, commands }: Pick<Spec, 'seccomp' | 'commands'>, capabilities: readonly string[]): Promise<Uint8Array> {
    const guest = { capabilities, withoutNamelessFiles: commands !== undefined }
    // A profile that is named may change between two sandboxes.
    if (seccomp !== undefined) return this.#source(seccomp, guest)
    const key = JSON.stringify(guest)
    const known = this.#kept.get(key)
    if (known) return known
    const asked = this.#source(undefined, guest)
    this.#kept.set(key, asked)
    asked.catch(() => this.#kept.delete(key))
    return asked
  }
}
