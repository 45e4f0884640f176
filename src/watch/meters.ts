/** What is measured, by its names. Labels are words of ours; ids, and names that others chose, are never among them. */
import { type Counter, type Gauge, type Histogram, type Registry } from './registry.js'

/** From a tenth of a millisecond, which a call that a pool answers is near, to the minutes that a build takes. */
const latencyBuckets = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10, 60]
const runBuckets = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300]
const requestBuckets = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1, 5, 30]

export interface Meters {
  readonly creates: Histogram
  readonly starts: Histogram
  readonly runs: Counter
  readonly runTimes: Histogram
  readonly executions: Counter
  readonly executionTimes: Histogram
  readonly live: Gauge
  readonly closed: Counter
  readonly limits: Counter
  readonly connections: Counter
  readonly networkBytes: Counter
  readonly pools: Gauge
  readonly poolWaiting: Gauge
  readonly errors: Counter
  readonly events: Counter
  readonly eventsMissed: Counter
  readonly anomalies: Counter
  readonly quotas: Counter
  readonly lost: Counter
  readonly auditAppends: Histogram
  readonly requests: Counter
  readonly requestTimes: Histogram
}

/** Once a registry. */
export function createMeters(registry: Registry): Meters {
  return { ...sandboxMeters(registry), ...programMeters(registry), ...networkMeters(registry), ...houseMeters(registry) }
}

function sandboxMeters(registry: Registry): Pick<Meters, 'creates' | 'live' | 'closed' | 'lost' | 'pools' | 'poolWaiting'> {
  return {
    creates: registry.histogram({
      name: 'glovebox_create_duration_seconds',
      help: 'How long it took until a sandbox was there, by the call that asked for it, the driver, and whether a pool had one ready.',
      labels: ['call', 'driver', 'pool'],
      buckets: latencyBuckets,
    }),
    live: registry.gauge({ name: 'glovebox_sandboxes_live', help: 'Sandboxes that are somebody’s now; fresh is cell or liner.', labels: ['fresh'] }),
    closed: registry.counter({ name: 'glovebox_sandboxes_closed', help: 'Sandboxes that are over, by the code of the reason.', labels: ['code'] }),
    lost: registry.counter({ name: 'glovebox_sandboxes_lost', help: 'Sandboxes that went with a process that had not closed them.' }),
    pools: registry.gauge({
      name: 'glovebox_pool_sandboxes',
      help: 'Sandboxes of pools: those of one-shots, and all that were created as pools, together.',
      labels: ['pool', 'state'],
    }),
    poolWaiting: registry.gauge({ name: 'glovebox_pool_waiting', help: 'Callers that wait for a sandbox of a pool.', labels: ['pool'] }),
  }
}

function programMeters(registry: Registry): Pick<Meters, 'starts' | 'runs' | 'runTimes' | 'executions' | 'executionTimes' | 'limits'> {
  return {
    starts: registry.histogram({
      name: 'glovebox_start_duration_seconds',
      help: 'How long it took to start a program in a sandbox that was there.',
      labels: ['kind'],
      buckets: latencyBuckets,
    }),
    runs: registry.counter({ name: 'glovebox_runs', help: 'Programs that have ended, by how.', labels: ['kind', 'outcome'] }),
    runTimes: registry.histogram({
      name: 'glovebox_run_duration_seconds',
      help: 'Wall time of programs that have ended.',
      labels: ['kind'],
      buckets: runBuckets,
    }),
    executions: registry.counter({ name: 'glovebox_executions', help: 'Executions of code that are over, by how.', labels: ['language', 'status'] }),
    executionTimes: registry.histogram({
      name: 'glovebox_execution_duration_seconds',
      help: 'Wall time of executions of code.',
      labels: ['language'],
      buckets: runBuckets,
    }),
    limits: registry.counter({ name: 'glovebox_limits_hit', help: 'Limits that programs have met.', labels: ['limit'] }),
  }
}

function networkMeters(registry: Registry): Pick<Meters, 'connections' | 'networkBytes'> {
  return {
    connections: registry.counter({
      name: 'glovebox_network_connections',
      help: 'Connections and requests out of sandboxes that are over, by the verdict on them.',
      labels: ['verdict', 'scheme'],
    }),
    networkBytes: registry.counter({ name: 'glovebox_network_bytes', help: 'Bytes out of sandboxes (up) and into them (down).', labels: ['direction'] }),
  }
}

type HouseMeters = 'errors' | 'events' | 'eventsMissed' | 'anomalies' | 'quotas' | 'auditAppends' | 'requests' | 'requestTimes'

function houseMeters(registry: Registry): Pick<Meters, HouseMeters> {
  return {
    errors: registry.counter({ name: 'glovebox_errors', help: 'Calls that were refused or failed, by call and code.', labels: ['call', 'code'], most: 500 }),
    events: registry.counter({ name: 'glovebox_events', help: 'Events that were told, by type.', labels: ['type'] }),
    eventsMissed: registry.counter({ name: 'glovebox_events_missed', help: 'Events that these figures are without, because there were too many at once.' }),
    anomalies: registry.counter({ name: 'glovebox_anomalies', help: 'Anomalies that were found, by kind.', labels: ['kind'] }),
    quotas: registry.counter({
      name: 'glovebox_quota_refusals',
      help: 'Requests that were refused for a quota, and quotas of a day that were spent.',
      labels: ['quota'],
    }),
    auditAppends: registry.histogram({
      name: 'glovebox_audit_append_duration_seconds',
      help: 'How long it took until a record of the audit trail was on the disk.',
      buckets: latencyBuckets,
    }),
    requests: registry.counter({
      name: 'glovebox_http_requests',
      help: 'Requests that were answered, by route and status.',
      labels: ['method', 'route', 'status'],
      most: 1000,
    }),
    requestTimes: registry.histogram({
      name: 'glovebox_http_request_duration_seconds',
      help: 'How long it took until an answer was begun, by route.',
      labels: ['route'],
      buckets: requestBuckets,
    }),
  }
}
