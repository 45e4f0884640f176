import { planSandbox } from '../../../src/policy/apply.js'
import { planRun } from '../../../src/policy/run.js'
import { parseFilter, parseId, parseSpec } from '../../../src/policy/spec.js'
import { type FuzzTarget, holds, jsonIn, unlessRefused } from '../target.js'

const usual = parseSpec({})

/** Specs, requests and filters, as they come from callers. */
export const target: FuzzTarget = {
  name: 'spec',
  most: 3000,
  seeds: [
    '{"template":"python","limits":{"memory":"512m","cpus":0.5,"time":"60s","disk":"100m","processes":64,"output":"10m"},"lifetime":"30m","idle":"5m","onExpiry":"pause"}',
    '{"network":{"allow":["api.example.com:443","*.example.org"]},"env":{"A":"1"},"mounts":[{"source":"/srv","target":"/srv","mode":"ro"}],"user":"root","root":"overlay"}',
    '{"command":["sh","-c","exit 3"],"cwd":"/workspace","env":{"A":"b"},"stdin":true,"timeout":"5s","output":{"limit":"1m","onLimit":"truncate"},"limits":{"cpuTime":"2s"}}',
    '{"command":"echo hi","terminal":{"cols":80,"rows":24},"stdin":true,"background":true,"tag":"dev"}',
    '{"name":"review","agent":"reviewer-7","metadata":{"pr":"412"},"from":"sha256:00","policy":"strict","seccomp":{"defaultAction":"SCMP_ACT_ERRNO"},"commands":["python3"],"minTier":"container","driver":"bwrap","ring":"1m"}',
  ],
  run(bytes) {
    const value = jsonIn(bytes)
    const spec = unlessRefused(() => parseSpec(value))
    if (spec) holds(spec.limits.memoryBytes > 0 && spec.limits.outputBytes >= 0 && spec.lifetimeMs > 0, 'a spec that was read is whole')
    unlessRefused(() => planSandbox(value))
    const plan = unlessRefused(() => planRun(value, usual))
    if (plan) holds(plan.timeMs === undefined || plan.timeMs > 0, 'a run that was read has a time')
    unlessRefused(() => parseFilter(value))
    unlessRefused(() => parseId(value))
    holds(!('polluted' in {}), 'no prototype is touched')
  },
}
