/** The endpoint that the environment or a setting names; undefined: nothing is traced. */
export function tracingEndpoint(env: Readonly<Record<string, string | undefined>>, setting?: string): string | undefined {
  if (setting !== undefined) return setting
  const named = env.OTEL_EXPORTER_OTLP_TRACES_ENDPOINT ?? env.OTEL_EXPORTER_OTLP_ENDPOINT
  return named === undefined || named === '' ? undefined : named
}
