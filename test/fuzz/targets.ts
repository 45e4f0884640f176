import { target as auditExport } from './targets/audit-export.js'
import { target as channelFrames } from './targets/channel-frames.js'
import { target as channelMessages } from './targets/channel-messages.js'
import { target as channelWarden } from './targets/channel-warden.js'
import { target as cliArguments } from './targets/cli-arguments.js'
import { target as egressDns } from './targets/egress-dns.js'
import { target as egressHello } from './targets/egress-hello.js'
import { target as egressHttpHead } from './targets/egress-http-head.js'
import { target as egressSocks } from './targets/egress-socks.js'
import { target as fileWorkerReplies } from './targets/file-worker-replies.js'
import { target as imageDocuments } from './targets/image-documents.js'
import { target as imageLayers } from './targets/image-layers.js'
import { target as interpreterFrames } from './targets/interpreter-frames.js'
import { target as networkHosts } from './targets/network-hosts.js'
import { target as networkRules } from './targets/network-rules.js'
import { target as patterns } from './targets/patterns.js'
import { target as policy } from './targets/policy.js'
import { target as quantities } from './targets/quantities.js'
import { target as receipt } from './targets/receipt.js'
import { target as seccompProfile } from './targets/seccomp-profile.js'
import { target as settingsFiles } from './targets/settings-files.js'
import { target as spec } from './targets/spec.js'
import { target as tarHeaders } from './targets/tar-headers.js'
import { target as wireFrames } from './targets/wire-frames.js'
import type { FuzzTarget } from './target.js'

export const targets: readonly FuzzTarget[] = [
  auditExport,
  channelFrames,
  channelMessages,
  channelWarden,
  cliArguments,
  egressDns,
  egressHello,
  egressHttpHead,
  egressSocks,
  fileWorkerReplies,
  imageDocuments,
  imageLayers,
  interpreterFrames,
  networkHosts,
  networkRules,
  patterns,
  policy,
  quantities,
  receipt,
  seccompProfile,
  settingsFiles,
  spec,
  tarHeaders,
  wireFrames,
]
