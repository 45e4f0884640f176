#include "mount-flags.h"

#include <sys/mount.h>
#include <sys/statvfs.h>

#include "die.h"

unsigned long mount_flags(const char *path)
{
  struct statvfs mounted;
  if (statvfs(path, &mounted) < 0) die("look at mount", path);
  unsigned long flags = 0;
  if (mounted.f_flag & ST_NOSUID) flags |= MS_NOSUID;
  if (mounted.f_flag & ST_NODEV) flags |= MS_NODEV;
  if (mounted.f_flag & ST_NOEXEC) flags |= MS_NOEXEC;
  if (mounted.f_flag & ST_NODIRATIME) flags |= MS_NODIRATIME;
  if (mounted.f_flag & ST_NOATIME) flags |= MS_NOATIME;
  else flags |= mounted.f_flag & ST_RELATIME ? MS_RELATIME : MS_STRICTATIME;
  return flags;
}
