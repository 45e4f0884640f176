/*
 * Names of system calls. libseccomp knows those of its own release; distributions ship releases older than their kernels, so
 * the later names stand here. Since 424 a call has one number on every architecture; the few exceptions have columns.
 */
#include "seccomp-calls.h"

#include <seccomp.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

struct call {
  const char *name;
  int x86_64;
  int aarch64;
};

static const struct call newer[] = {
    {"uretprobe", 335, CALL_ABSENT},   {"uprobe", 336, CALL_ABSENT},     {"pidfd_getfd", 438, 438},
    {"faccessat2", 439, 439},          {"process_madvise", 440, 440},    {"epoll_pwait2", 441, 441},
    {"mount_setattr", 442, 442},       {"quotactl_fd", 443, 443},        {"landlock_create_ruleset", 444, 444},
    {"landlock_add_rule", 445, 445},   {"landlock_restrict_self", 446, 446}, {"memfd_secret", 447, 447},
    {"process_mrelease", 448, 448},    {"futex_waitv", 449, 449},        {"set_mempolicy_home_node", 450, 450},
    {"cachestat", 451, 451},           {"fchmodat2", 452, 452},          {"map_shadow_stack", 453, 453},
    {"futex_wake", 454, 454},          {"futex_wait", 455, 455},         {"futex_requeue", 456, 456},
    {"statmount", 457, 457},           {"listmount", 458, 458},          {"lsm_get_self_attr", 459, 459},
    {"lsm_set_self_attr", 460, 460},   {"lsm_list_modules", 461, 461},   {"mseal", 462, 462},
    {"setxattrat", 463, 463},          {"getxattrat", 464, 464},         {"listxattrat", 465, 465},
    {"removexattrat", 466, 466},       {"open_tree_attr", 467, 467},     {"file_getattr", 468, 468},
    {"file_setattr", 469, 469},        {"listns", 470, 470},
};

static int find_newer(uint32_t arch, const char *name) {
  for (size_t i = 0; i < sizeof newer / sizeof *newer; i++)
    if (strcmp(newer[i].name, name) == 0) return arch == SCMP_ARCH_X86_64 ? newer[i].x86_64 : newer[i].aarch64;
  return CALL_UNKNOWN;
}

static int parse_number(const char *text) {
  char *end;
  unsigned long number = strtoul(text, &end, 10);
  return *end == '\0' && number < 1 << 20 ? (int)number : CALL_UNKNOWN;
}

int call_number(uint32_t arch, const char *name) {
  if (name[0] >= '0' && name[0] <= '9') return parse_number(name);
  int number = seccomp_syscall_resolve_name_arch(arch, name);
  if (number >= 0) return number;
  return number == __NR_SCMP_ERROR ? find_newer(arch, name) : CALL_ABSENT;
}

int find_call(uint32_t arch, const char *name) {
  int number = call_number(arch, name);
  if (number < 0 || arch == seccomp_arch_native()) return number;
  /* Compiling for another architecture, libseccomp takes its own number of a call and translates it. */
  int own = name[0] >= '0' && name[0] <= '9' ? CALL_FOREIGN : seccomp_syscall_resolve_name(name);
  return own >= 0 ? own : CALL_FOREIGN;
}
