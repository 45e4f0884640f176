/**
 * What of the host is never shown in a cell, each with the reason. Three ways to say it: whole trees, of which nothing above or below is shown either;
 * what lies in a home folder; and what a folder must not have at its top.
 */
export interface ForbiddenTree {
  readonly path: string
  readonly why: string
}

const kernelTalks = 'through it a guest talks to the kernel of the host'
const containers = 'whoever has it rules the containers of this machine'
const passwords = 'it holds passwords or keys of this machine'

export const forbiddenTrees: readonly ForbiddenTree[] = [
  { path: '/proc', why: kernelTalks },
  { path: '/sys', why: kernelTalks },
  { path: '/dev', why: 'it holds the devices of the host' },
  { path: '/boot', why: 'the machine starts from it' },
  { path: '/run', why: 'it holds the sockets of the host’s services' },
  { path: '/var/run', why: 'it holds the sockets of the host’s services' },
  { path: '/var/lib/docker', why: containers },
  { path: '/var/lib/containerd', why: containers },
  { path: '/var/lib/containers', why: containers },
  { path: '/var/lib/crio', why: containers },
  { path: '/var/lib/kubelet', why: containers },
  { path: '/etc/shadow', why: passwords },
  { path: '/etc/shadow-', why: passwords },
  { path: '/etc/gshadow', why: passwords },
  { path: '/etc/gshadow-', why: passwords },
  { path: '/etc/security/opasswd', why: passwords },
  { path: '/etc/ssh', why: passwords },
  { path: '/etc/ssl/private', why: passwords },
  { path: '/etc/pki/tls/private', why: passwords },
  { path: '/etc/letsencrypt', why: passwords },
  { path: '/etc/krb5.keytab', why: passwords },
  { path: '/etc/wireguard', why: passwords },
  { path: '/etc/NetworkManager/system-connections', why: passwords },
  { path: '/etc/kubernetes', why: passwords },
  { path: '/etc/sudoers', why: 'it says who may become root' },
  { path: '/etc/sudoers.d', why: 'it says who may become root' },
]

const keys = 'keys are kept there'
const cloudKeys = 'it signs in to a cloud account'
const tokens = 'passwords or tokens are kept there'
const history = 'it tells what its owner did, with passwords at times'

/** Below a home folder; nothing above or below them is shown either. */
export const forbiddenInHome: readonly ForbiddenTree[] = [
  { path: '.ssh', why: keys },
  { path: '.gnupg', why: keys },
  { path: '.password-store', why: tokens },
  { path: '.local/share/keyrings', why: tokens },
  { path: '.aws', why: cloudKeys },
  { path: '.azure', why: cloudKeys },
  { path: '.config/gcloud', why: cloudKeys },
  { path: '.config/doctl', why: cloudKeys },
  { path: '.oci', why: cloudKeys },
  { path: '.kube', why: 'it rules a cluster' },
  { path: '.docker', why: 'registry passwords and the sockets of Docker are kept there' },
  { path: '.config/gh', why: tokens },
  { path: '.config/hub', why: tokens },
  { path: '.config/op', why: tokens },
  { path: '.netrc', why: tokens },
  { path: '.git-credentials', why: tokens },
  { path: '.config/git/credentials', why: tokens },
  { path: '.npmrc', why: tokens },
  { path: '.pypirc', why: tokens },
  { path: '.cargo/credentials.toml', why: tokens },
  { path: '.gem/credentials', why: tokens },
  { path: '.m2/settings.xml', why: tokens },
  { path: '.pgpass', why: tokens },
  { path: '.my.cnf', why: tokens },
  { path: '.vault-token', why: tokens },
  { path: '.terraform.d', why: tokens },
  { path: '.Xauthority', why: 'it opens the screen of its owner' },
  { path: '.mozilla', why: 'a browser keeps its sessions there' },
  { path: '.config/google-chrome', why: 'a browser keeps its sessions there' },
  { path: '.config/chromium', why: 'a browser keeps its sessions there' },
  { path: '.bash_history', why: history },
  { path: '.zsh_history', why: history },
  { path: '.python_history', why: history },
]

/** At the top of any folder: what makes it a home with keys, wherever it is. Only names that projects do not use for anything else. */
export const forbiddenAtTop: readonly ForbiddenTree[] = [
  ...forbiddenInHome.filter(({ path }) =>
    ['.ssh', '.gnupg', '.password-store', '.aws', '.azure', '.config/gcloud', '.kube', '.netrc', '.git-credentials'].includes(path),
  ),
  { path: '.docker/config.json', why: 'registry passwords are kept there' },
  { path: 'id_rsa', why: keys },
  { path: 'id_ecdsa', why: keys },
  { path: 'id_ed25519', why: keys },
]

/** Magic numbers of filesystems that are the kernel's own, wherever they are mounted. */
export const kernelFilesystems: Readonly<Record<number, string>> = {
  0x9fa0: 'proc',
  0x62656572: 'sysfs',
  0x27e0eb: 'cgroup',
  0x63677270: 'cgroup2',
  0x64626720: 'debugfs',
  0x74726163: 'tracefs',
  0x73636673: 'securityfs',
  0xcafe4a11: 'bpf',
  0x1cd1: 'devpts',
  0x62656570: 'configfs',
  0x6165676c: 'pstore',
  0xde5e81e4: 'efivarfs',
  0x6e736673: 'nsfs',
  0x19800202: 'mqueue',
  0x42494e4d: 'binfmt_misc',
}

export interface SourceFacts {
  /** Absolute, without links. */
  readonly path: string
  readonly homes: readonly string[]
  /** Folders of our own: records, keys, caches. */
  readonly ownFolders: readonly string[]
  /** Of the sockets that programs of this machine listen at. */
  readonly sockets: readonly string[]
  /** What else there is here that no cell may have. */
  readonly besides: readonly ForbiddenTree[]
}

/** Why a path of the host must not be shown in a cell; undefined when nothing speaks against it. */
export function sourceRefusal({ path, homes, ownFolders, sockets, besides }: SourceFacts): string | undefined {
  if (path === '/') return 'it is the whole host'
  if (path === '/etc')
    return `it holds ${forbiddenTrees.filter((tree) => tree.path.startsWith('/etc/')).length} places with secrets of this machine; name the file you need`
  if (path === '/home') return 'home folders are kept there; name the folder you need'
  const home = homes.find((each) => path === each || isBelow(each, path))
  if (home !== undefined)
    return home === path ? 'it is a home folder, with whatever its owner keeps there; name the folder you need' : `it holds the home folder ${home}`
  const trees = [
    ...forbiddenTrees,
    ...besides,
    ...homes.flatMap((each) => forbiddenInHome.map((tree) => ({ path: `${each}/${tree.path}`, why: tree.why }))),
    ...ownFolders.map((folder) => ({ path: folder, why: 'glovebox keeps its own records there' })),
  ]
  const tree = trees.find((each) => each.path === path || isBelow(path, each.path) || isBelow(each.path, path))
  if (tree !== undefined)
    return isBelow(tree.path, path) ? `it holds ${tree.path}: ${tree.why}` : `${tree.path === path ? '' : `it lies in ${tree.path}: `}${tree.why}`
  const socket = sockets.find((each) => isBelow(each, path))
  return socket === undefined ? undefined : `it holds the socket ${socket}, through which a guest would reach a program outside`
}

export function isBelow(path: string, folder: string): boolean {
  return path.startsWith(folder === '/' ? '/' : `${folder}/`)
}
