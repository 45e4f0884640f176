/** Without schemas, as the words of specs are. */

/** `once`: this attempt; `sandbox`: this host and port until the rules are replaced. */
export const networkApprovals = ['once', 'sandbox', 'deny'] as const
export type NetworkApproval = (typeof networkApprovals)[number]
