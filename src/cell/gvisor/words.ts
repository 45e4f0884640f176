/** The last line of a runsc that failed, as `running container: …`, or `W1117 19:51:05.233399 14565 util.go:64] FATAL ERROR: …`. */
export function wordsOfRunsc(line: string): string | undefined {
  const message =
    /^(?:[IWEF]\d{4} \S+ +\d+ \S+\] )?(?:FATAL ERROR: )?((?:running|starting|creating|cannot|error|unknown|reading|setting|joining|invalid)\b.*)$/.exec(
      line,
    )?.[1]
  return message === undefined ? undefined : `runsc: ${message}`
}
