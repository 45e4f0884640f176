/** What has happened is known when the events that tell of it were read: all that there are now have been after two turns. */
export async function newsTakenIn(): Promise<void> {
  for (let turn = 0; turn < 2; turn += 1) await new Promise((resolve) => setImmediate(resolve))
}
