import type { CreationOptions, PlatformNetwork } from '../contract/platform-network.js'
import type { PlatformChanges } from '../contract/changes.js'
import type { PlatformLife } from '../contract/lifetimes.js'
import type { Platform } from '../contract/platform.js'
import type { PlatformPorts } from '../contract/ports.js'
import type { PlatformSnapshots } from '../contract/snapshots.js'
import type { SpecInput } from '../contract/spec.js'
import { Acts, type Doer } from './acts.js'
import { auditedCode } from './audited-code.js'
import { auditedFiles } from './audited-files.js'
import { auditedPools } from './audited-pools.js'
import { auditedProcess, auditedProcesses, startedRun } from './audited-processes.js'
import { bornEnding, createFacts } from './creation-facts.js'
import { closingReceipt, receiptHash } from './receipt-hash.js'
import { shownRequest, shownValue } from './shown.js'

/** The platform as one actor has it: each act is in the audit trail before its effect, whatever facet it comes by, and nothing is done that its scopes do not include. */
export function auditedPlatform(platform: Platform, doer: Doer): Platform {
  const acts = new Acts(doer)
  return {
    changes: auditedChanges(platform.changes, acts),
    code: auditedCode(platform.code, acts),
    files: auditedFiles(platform.files, acts),
    snapshots: auditedSnapshots(platform.snapshots, acts),
    events: platform.events,
    life: auditedLife(platform.life, acts),
    network: auditedNetwork(platform.network, acts),
    pools: auditedPools(platform, acts),
    ports: auditedPorts(platform.ports, acts),
    processes: auditedProcesses(platform.processes, acts),
    ...auditedCalls(platform, acts),
    // It is a view: what it shows belongs to whoever made it.
    [Symbol.asyncDispose]: () => Promise.resolve(),
  }
}

type Calls = Omit<
  Platform,
  'changes' | 'code' | 'events' | 'files' | 'snapshots' | 'life' | 'network' | 'pools' | 'ports' | 'processes' | typeof Symbol.asyncDispose
>

function auditedCalls(platform: Platform, acts: Acts): Calls {
  return {
    create: (spec: SpecInput, options?: CreationOptions) =>
      acts.making('sandbox.create', createFacts(spec, acts), { effect: () => platform.create(spec, options), ending: bornEnding }),
    info: (id, options) => acts.seeing(() => platform.info(id, options)),
    list: (filter, options) => acts.following(() => platform.list(filter, options)),
    start: async (id, request, options) => {
      const begun = await acts.begin('run.start', { sandbox: id, details: shownRequest(request, acts.settings) })
      const process = await startedRun(begun, () => platform.start(id, request, options))
      return auditedProcess(process, { acts, sandbox: id, isOwn: true })
    },
    limit: (id, limits, options) =>
      acts.doing('sandbox.limit', { sandbox: id, details: { limits: shownValue(limits) } }, { effect: () => platform.limit(id, limits, options) }),
    usage: (id, options) => acts.seeing(() => platform.usage(id, options)),
    receipt: async (id, options) => {
      const receipt = await acts.seeing(() => platform.receipt(id, options))
      await acts.done('receipt.issue', { sandbox: id, receipt: receiptHash(receipt) })
      return receipt
    },
    close: (id) =>
      acts
        .doingAnyway(
          'sandbox.close',
          { sandbox: id },
          {
            effect: async () => {
              const receipt = await closingReceipt(acts, () => platform.receipt(id))
              await platform.close(id)
              return receipt
            },
            ending: (receipt) => (receipt === undefined ? {} : { receipt }),
          },
        )
        .then(() => undefined),
    closeAll: (filter) =>
      acts.doingAnyway(
        'sandbox.close',
        { details: { filter: shownValue(filter ?? {}) } },
        { effect: () => platform.closeAll(filter), ending: (closed) => ({ details: { closed } }) },
      ),
    probe: (options) => acts.seeing(() => platform.probe(options)),
  }
}

function auditedChanges(changes: PlatformChanges, acts: Acts): PlatformChanges {
  return { written: (id, target, options) => acts.seeing(() => changes.written(id, target, options)) }
}

function auditedLife(life: PlatformLife, acts: Acts): PlatformLife {
  return {
    pause: (id, options) =>
      acts.doing('sandbox.pause', { sandbox: id, details: { memory: options?.memory ?? true } }, { effect: () => life.pause(id, options) }),
    resume: (id, options) => acts.doing('sandbox.resume', { sandbox: id }, { effect: () => life.resume(id, options) }),
    extend: (id, duration, options) =>
      acts.doing('sandbox.lifetime', { sandbox: id, details: { extend: shownValue(duration) } }, { effect: () => life.extend(id, duration, options) }),
    setLifetime: (id, duration, options) =>
      acts.doing('sandbox.lifetime', { sandbox: id, details: { set: shownValue(duration) } }, { effect: () => life.setLifetime(id, duration, options) }),
    events: (id, options) => acts.following(() => life.events(id, options)),
  }
}

function auditedNetwork(network: PlatformNetwork, acts: Acts): PlatformNetwork {
  return {
    update: (id, rules, options) =>
      acts.doing('network.update', { sandbox: id, details: { network: shownValue(rules) } }, { effect: () => network.update(id, rules, options) }),
    log: (id, options) => acts.following(() => network.log(id, options)),
    summary: (id, options) => acts.seeing(() => network.summary(id, options)),
  }
}

function auditedPorts(ports: PlatformPorts, acts: Acts): PlatformPorts {
  return {
    forward: (id, port, options) =>
      acts.doing('port.forward', { sandbox: id, details: { port: shownValue(port) } }, { effect: () => ports.forward(id, port, options) }),
    waitFor: (id, port, options) => acts.seeing(() => ports.waitFor(id, port, options)),
    connect: (id, port, options) =>
      acts.doing('port.forward', { sandbox: id, details: { port: shownValue(port), connect: true } }, { effect: () => ports.connect(id, port, options) }),
  }
}

function auditedSnapshots(snapshots: PlatformSnapshots, acts: Acts): PlatformSnapshots {
  return {
    take: (id, options) =>
      acts.making(
        'snapshot.take',
        { sandbox: id, details: { name: options?.name ?? null } },
        { effect: () => snapshots.take(id, options), ending: (info) => ({ details: { id: info.id } }) },
      ),
    list: (options) => acts.seeing(() => snapshots.list(options)),
    remove: (snapshot, options) =>
      acts.doing('snapshot.remove', { details: { snapshot: shownValue(snapshot) } }, { effect: () => snapshots.remove(snapshot, options) }),
    diff: (id, options) => acts.seeing(() => snapshots.diff(id, options)),
    export: (id, options) =>
      acts.doing('snapshot.export', { sandbox: id, details: { since: options?.since ?? null } }, { effect: () => snapshots.export(id, options) }),
    fork: (id, count, options) =>
      acts.making(
        'snapshot.fork',
        { sandbox: id, details: { count: shownValue(count) } },
        { effect: () => snapshots.fork(id, count, options), ending: (made) => ({ details: { sandboxes: made.map((info) => info.id) } }) },
      ),
  }
}
