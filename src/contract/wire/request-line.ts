/** What the log says of a request: nothing that is secret, and nothing of what was asked for but the route. */
export interface RequestLine {
  readonly at: string
  readonly request: string
  readonly method: string
  /** The route's name; empty where there is none. */
  readonly route: string
  readonly status: number
  readonly ms: number
  readonly tenant?: string
  readonly key?: string
  /** Of what went wrong: its code; of a defect of ours also where it came from. */
  readonly error?: string
  readonly defect?: string
}
