#include "caps.h"

#include <errno.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

int caps_permitted(uint64_t *mask)
{
  struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
  struct __user_cap_data_struct sets[2];
  if (syscall(SYS_capget, &header, sets) < 0) return -1;
  *mask = (uint64_t)sets[0].permitted | (uint64_t)sets[1].permitted << 32;
  return 0;
}

int caps_set(uint64_t mask)
{
  struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
  uint32_t low = (uint32_t)mask, high = (uint32_t)(mask >> 32);
  struct __user_cap_data_struct sets[2] = { { .effective = low, .permitted = low }, { .effective = high, .permitted = high } };
  return (int)syscall(SYS_capset, &header, sets);
}

int caps_clear_ambient(void)
{
  if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) == 0) return 0;
  /* A kernel that cannot even be asked for one has none. */
  if (errno != EINVAL || prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_IS_SET, 0, 0, 0) >= 0 || errno != EINVAL) return -1;
  return 0;
}

int caps_bound(uint64_t mask)
{
  for (unsigned long capability = 0; capability < 64; capability++) {
    if (mask & CAPS_BIT(capability) || prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) == 0) continue;
    /* Only who may not drop anything has to ask, and minds nothing that is not held. Below nothing are those past the last one that this kernel knows. */
    const int error = errno, held = prctl(PR_CAPBSET_READ, capability, 0, 0, 0);
    errno = error;
    if (held > 0) return -1;
    if (held < 0) break;
  }
  return 0;
}
