import type { Platform } from '../contract/platform.js'
import type { OneShot, PlatformPools } from '../contract/pools.js'
import type { Acts } from './acts.js'
import { bornEnding, createFacts } from './creation-facts.js'
import { auditedProcess, tellEnding } from './audited-processes.js'
import { closingReceipt, receiptHash } from './receipt-hash.js'
import { shownRequest, shownValue } from './shown.js'

/** Sandboxes that wait are in the trail when they become somebody's. */
export function auditedPools({ pools }: Pick<Platform, 'pools'>, acts: Acts): PlatformPools {
  return {
    create: (spec, settings, options) =>
      acts.making(
        'pool.create',
        { ...createFacts(spec, acts), details: { ...createFacts(spec, acts).details, settings: shownValue(settings ?? {}) } },
        {
          effect: () => pools.create(spec, settings, options),
          ending: ({ id }) => ({ details: { pool: id } }),
        },
      ),
    status: (pool, options) => acts.seeing(() => pools.status(pool, options)),
    acquire: (pool, claim, options) =>
      acts.making(
        'sandbox.create',
        { agent: claim?.agent, details: { pool: shownValue(pool), claim: shownValue(claim ?? {}) } },
        {
          effect: () => pools.acquire(pool, claim, options),
          ending: bornEnding,
        },
      ),
    close: (pool) => acts.doingAnyway('pool.close', { details: { pool: shownValue(pool) } }, { effect: () => pools.close(pool) }),
    take: (spec, options) => acts.making('sandbox.create', createFacts(spec, acts), { effect: () => pools.take(spec, options), ending: bornEnding }),
    release: (sandbox) => acts.doingAnyway('sandbox.close', { sandbox }, { effect: () => pools.release(sandbox) }),
    run: async (place, request, options) => {
      const where = 'pool' in place ? { details: { pool: shownValue(place.pool) } } : createFacts(place.spec, acts)
      // It is written down while a place for it is found, and is there before the program is.
      const recorded = acts.beginBriefly('run.start', { ...where, details: { ...where.details, ...shownRequest(request, acts.settings) } })
      const running = pools.run(place, request, { ...options, after: recorded.begun, afterIfConfined: recorded.written })
      const made = running.catch(() => undefined)
      const begun = await recorded.begun.catch(async (error: unknown) => {
        await (await made)?.release().catch(() => undefined)
        throw error
      })
      try {
        const shot = await running
        const { id, driver, tier } = shot.sandbox
        tellEnding(shot.program, { ...begun, ok: (ending) => begun.ok({ ...ending, sandbox: id, details: { ...ending?.details, driver, tier } }) })
        return auditedShot(shot, acts)
      } catch (error) {
        begun.failed(error)
        throw error
      }
    },
  }
}

function auditedShot(shot: OneShot, acts: Acts): OneShot {
  const { id } = shot.sandbox
  return {
    sandbox: shot.sandbox,
    program: auditedProcess(shot.program, { acts, sandbox: id, isOwn: true }),
    ...(shot.network && { network: shot.network }),
    receipt: async (options) => {
      const receipt = await acts.seeing(() => shot.receipt(options))
      await acts.done('receipt.issue', { sandbox: id, receipt: receiptHash(receipt) })
      return receipt
    },
    release: async () => {
      const receipt = await closingReceipt(acts, () => shot.receipt())
      if (receipt !== undefined) acts.tell('receipt.issue', { sandbox: id, receipt })
      return shot.release()
    },
  }
}
