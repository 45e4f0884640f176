/** Lets so many acts go on at once; the others follow in the order in which they came. */
export type Turnstile = <T>(act: () => Promise<T>) => Promise<T>

export function createTurnstile(most: number): Turnstile {
  const waiting: (() => void)[] = []
  let going = 0
  return async (act) => {
    if (going < most) going += 1
    else await new Promise<void>((resolve) => void waiting.push(resolve))
    try {
      return await act()
    } finally {
      const next = waiting.shift()
      // Whoever goes hands its place on.
      if (next) next()
      else going -= 1
    }
  }
}
