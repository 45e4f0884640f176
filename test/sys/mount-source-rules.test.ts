import { describe, expect, test } from 'vitest'
import { sourceRefusal } from '../../src/sys/mount-source-rules.js'

const surroundings = {
  besides: [],
  homes: ['/root', '/home/ann', '/srv/homes/bob'],
  ownFolders: ['/run/glovebox', '/var/cache/glovebox', '/home/ann/.local/share/glovebox'],
  sockets: ['/srv/app/tmp/server.sock', '/tmp/tmux-1000/default'],
}

function refusal(path: string): string | undefined {
  return sourceRefusal({ path, ...surroundings })
}

describe('what would hand over the host is refused with the reason', () => {
  test.each([
    ['/', 'it is the whole host'],
    ['/proc', 'through it a guest talks to the kernel of the host'],
    ['/proc/1/root', 'it lies in /proc: through it a guest talks to the kernel of the host'],
    ['/sys/fs/cgroup', 'it lies in /sys: through it a guest talks to the kernel of the host'],
    ['/dev/shm', 'it lies in /dev: it holds the devices of the host'],
    ['/boot', 'the machine starts from it'],
    ['/run/docker.sock', 'it lies in /run: it holds the sockets of the host’s services'],
    ['/var/lib/docker/volumes', 'it lies in /var/lib/docker: whoever has it rules the containers of this machine'],
    ['/etc/shadow', 'it holds passwords or keys of this machine'],
    ['/etc/ssh/ssh_host_rsa_key', 'it lies in /etc/ssh: it holds passwords or keys of this machine'],
    ['/etc/ssl', 'it holds /etc/ssl/private: it holds passwords or keys of this machine'],
    ['/etc/sudoers.d', 'it says who may become root'],
    ['/var', 'it holds /var/run: it holds the sockets of the host’s services'],
    ['/var/lib', 'it holds /var/lib/docker: whoever has it rules the containers of this machine'],
    ['/root', 'it is a home folder, with whatever its owner keeps there; name the folder you need'],
    ['/home', 'home folders are kept there; name the folder you need'],
    ['/home/ann', 'it is a home folder, with whatever its owner keeps there; name the folder you need'],
    ['/srv/homes', 'it holds the home folder /srv/homes/bob'],
    ['/home/ann/.ssh', 'keys are kept there'],
    ['/home/ann/.ssh/id_ed25519', 'it lies in /home/ann/.ssh: keys are kept there'],
    ['/srv/homes/bob/.aws/credentials', 'it lies in /srv/homes/bob/.aws: it signs in to a cloud account'],
    ['/root/.kube', 'it rules a cluster'],
    ['/home/ann/.netrc', 'passwords or tokens are kept there'],
    ['/home/ann/.config', 'it holds /home/ann/.config/gcloud: it signs in to a cloud account'],
    ['/home/ann/.local/share/glovebox', 'glovebox keeps its own records there'],
    ['/var/cache/glovebox/templates', 'it lies in /var/cache/glovebox: glovebox keeps its own records there'],
    ['/srv/app', 'it holds the socket /srv/app/tmp/server.sock, through which a guest would reach a program outside'],
    ['/tmp', 'it holds the socket /tmp/tmux-1000/default, through which a guest would reach a program outside'],
  ])('%s', (path, why) => {
    expect(refusal(path)).toBe(why)
  })

  test('/etc, whose single files may be named', () => {
    expect(refusal('/etc')).toMatch(/^it holds \d+ places with secrets of this machine; name the file you need$/)
  })
})

test.each([
  '/home/ann/project',
  '/root/project',
  '/home/ann/.config/nvim',
  '/etc/ssl/certs',
  '/etc/hosts',
  '/usr/share',
  '/opt/data',
  '/tmp/work',
  '/srv/app/public',
  '/processes',
  '/var/log',
])('nothing speaks against %s', (path) => {
  expect(refusal(path)).toBeUndefined()
})
