import type { KnownCase } from './known.js'

export const knownFilesystem: readonly KnownCase[] = [
  {
    id: 'isolation/host-shadow',
    threats: 'F-01',
    tries: 'Reads /etc/shadow, /etc/gshadow, /etc/sudoers, the keys of ssh and the machine id.',
    means: "The host's own /etc is in the cell, with what is secret in it.",
  },
  {
    id: 'isolation/host-canary-file',
    threats: 'F-02 F-08 F-19 F-20',
    tries: "Reads a file that was planted on the host by its path, by /proc/self/root and cwd, by dots and by the engine's descriptor.",
    means: 'Programs can read files of the host.',
  },
  {
    id: 'isolation/host-homes',
    threats: 'F-02',
    tries: 'Lists /root and /home, and looks below /tmp for what was planted on the host.',
    means: "Folders of the host's users are in the cell.",
  },
  {
    id: 'isolation/control-sockets',
    threats: 'F-05',
    tries: 'Connects to the sockets of docker, containerd, cri-o, podman, systemd and dbus.',
    means: 'Whoever talks to one of these is root on the host.',
  },
  {
    id: 'isolation/writes-outside',
    threats: 'F-07',
    tries: 'Creates a file in each folder of the system.',
    means: 'What is outside the workspace can be written to: later runs, or the host, may execute it.',
  },
  {
    id: 'isolation/system-files',
    threats: 'F-07 F-37 M-19',
    tries: 'Opens system files for writing, and changes their modes and times.',
    means: 'Files that other sandboxes or the host execute can be changed.',
  },
  {
    id: 'files/links-out',
    threats: 'F-10',
    tries: "Leaves links to the host's folders in the workspace, and asks the API to read, write, list, pack and remove through them.",
    means: 'The API follows links of a guest with rights that the guest has not.',
  },
  {
    id: 'files/paths',
    threats: 'F-13 F-16',
    tries: 'Asks the API for chains and circles of links, names that are too long, a NUL, and paths that look like ways up.',
    means: 'Paths are not checked the way the kernel reads them.',
  },
  {
    id: 'files/hostile-archives',
    threats: 'F-17',
    tries: 'Uploads archives with names that climb, absolute names, links before files, hard links out, devices and set-id bits.',
    means: 'An archive can write outside the folder that it is unpacked to.',
  },
  {
    id: 'isolation/descriptors',
    threats: 'F-20 F-21',
    tries: 'Lists the descriptors that a program begins with.',
    means: 'A descriptor of the host was left open: a way to its files or to its control.',
  },
  {
    id: 'isolation/kernel-settings',
    threats: 'F-22 K-31',
    tries: 'Opens core_pattern, modprobe, sysrq-trigger and other settings of the kernel for writing.',
    means: 'A program can make the kernel of the host execute something, or stop it.',
  },
  {
    id: 'isolation/kernel-secrets',
    threats: 'F-23',
    tries: 'Reads kcore, keys, timer lists, firmware, modules, page counts and more of what the kernel tells.',
    means: 'What the kernel tells of the host is not masked.',
  },
  {
    id: 'isolation/devices',
    threats: 'F-31 F-32',
    tries: 'Lists /dev, opens kmsg and mem, looks for terminals of the host, and makes a device node.',
    means: 'Devices of the host can be used.',
  },
  {
    id: 'isolation/device-times',
    threats: 'F-33',
    tries: 'Changes the times of the devices, and of what is masked by one.',
    means: "Attributes of the host's own inodes can be changed.",
  },
  {
    id: 'isolation/many-terminals',
    threats: 'F-32',
    tries: 'Opens two hundred terminals at once.',
    means: 'A cell can use up the terminals of the machine.',
  },
  {
    id: 'isolation/host-opens',
    threats: 'F-40',
    tries: 'Watches a program of /usr by inotify while the host opens it.',
    means: 'Programs can see which files the host opens.',
  },
  {
    id: 'isolation/separate-locks',
    threats: 'F-42 M-04',
    tries: 'Locks files of the system in one sandbox and looks at the locks in another.',
    means: 'One sandbox can block another, or the host, by locks.',
  },
  {
    id: 'isolation/root-writes',
    threats: 'F-07 F-22 F-31',
    tries: 'As in-cell root, writes to the system, makes a device, and reads the file that was planted on the host.',
    means: 'In-cell root has rights over what is not its own.',
  },
  {
    id: 'programs/cwd',
    threats: 'F-43',
    tries: 'Writes and reads in the workspace, which must work.',
    means: 'The control beside the denials does not work: nothing can be said of them.',
  },
  {
    id: 'files/acts',
    threats: 'F-44',
    tries: 'Writes, reads, lists and removes files by the API, which must work.',
    means: 'The control beside the denials does not work: nothing can be said of them.',
  },
]
