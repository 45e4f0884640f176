import type { Driver, Probe } from '../contract/driver.js'

/** What each driver found on this machine. A driver that works is asked once; one that does not is asked again, since its obstacle may have been removed. */
export class Probes {
  readonly #known = new Map<string, Promise<Probe>>()

  /** One after the other, until one is enough: to ask a driver may take it some cells that it opens. */
  async until(drivers: readonly Driver[], isEnough: (probe: Probe) => boolean): Promise<Probe[]> {
    const found: Probe[] = []
    for (const driver of drivers) {
      const probe = await (this.#known.get(driver.name) ?? this.#ask(driver))
      found.push(probe)
      if (isEnough(probe)) break
    }
    return found
  }

  fresh(drivers: readonly Driver[]): Promise<Probe[]> {
    return Promise.all(drivers.map((driver) => this.#ask(driver)))
  }

  #ask(driver: Driver): Promise<Probe> {
    const asked = driver.probe()
    const forget = (): void => {
      if (this.#known.get(driver.name) === asked) this.#known.delete(driver.name)
    }
    this.#known.set(driver.name, asked)
    asked.then((probe) => probe.available || forget(), forget)
    return asked
  }
}
