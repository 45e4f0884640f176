/** Whoever leaves the choice to us says so by this, or says nothing. */
const anyDriver = 'auto'

/** Whether a choice is left open altogether. */
export function isOpenChoice(name: string | undefined): name is undefined | typeof anyDriver {
  return name === undefined || name === anyDriver
}

/** Whether a driver is meant by a name: its own, or that of its family, as `oci` is of `oci:runc`. */
export function isMeantBy(name: string, driver: string): boolean {
  return driver === name || driver.startsWith(`${name}:`)
}
