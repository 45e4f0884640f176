/*
 * A deny-list, and only the second line: the guests' own filter, which CONFIGURE brings, is an allow-list. This one holds whatever that one says,
 * also for a cell that was given none. Each machine's numbers are needed twice over, because a program may use those of the 32-bit machine too.
 */
#include "self-filter.h"

#include "liner.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

/* One number on every machine. */
#define SINCE_UNIFICATION \
  425 /* io_uring_setup */, 426 /* io_uring_enter */, 427 /* io_uring_register */, 428 /* open_tree */, 429 /* move_mount */, 430 /* fsopen */, \
    431 /* fsconfig */, 432 /* fsmount */, 433 /* fspick */, 438 /* pidfd_getfd */, 440 /* process_madvise */, 442 /* mount_setattr */, \
    467 /* open_tree_attr */

#define ON_EVERY_64_BIT \
  SYS_mount, SYS_umount2, SYS_pivot_root, SYS_swapon, SYS_swapoff, SYS_acct, SYS_quotactl, SYS_reboot, SYS_ptrace, SYS_process_vm_readv, \
    SYS_process_vm_writev, SYS_kcmp, SYS_bpf, SYS_perf_event_open, SYS_userfaultfd, SYS_fanotify_init, SYS_open_by_handle_at, SYS_setns, SYS_unshare, \
    SYS_add_key, SYS_request_key, SYS_keyctl, SYS_init_module, SYS_finit_module, SYS_delete_module, SYS_kexec_load, SYS_kexec_file_load, SYS_settimeofday, \
    SYS_clock_settime, SYS_clock_adjtime, SYS_syslog, SYS_vhangup, SYS_lookup_dcookie

#if defined(__x86_64__)
#define NATIVE AUDIT_ARCH_X86_64
#define COMPAT AUDIT_ARCH_I386
#define X32_BIT 0x40000000
#define COMPAT_PRLIMIT 340
#define COMPAT_SOCKET 359
#define COMPAT_SOCKETPAIR 360
#define COMPAT_SOCKETCALL 102
static const uint32_t NATIVE_DENIED[] = { ON_EVERY_64_BIT, SYS_iopl, SYS_ioperm, SYS_modify_ldt, SINCE_UNIFICATION };
static const uint32_t COMPAT_DENIED[] = {
  21 /* mount */, 22 /* umount */, 52 /* umount2 */, 217 /* pivot_root */, 87 /* swapon */, 115 /* swapoff */, 51 /* acct */, 131 /* quotactl */,
  88 /* reboot */, 26 /* ptrace */, 347 /* process_vm_readv */, 348 /* process_vm_writev */, 349 /* kcmp */, 357 /* bpf */, 336 /* perf_event_open */,
  374 /* userfaultfd */, 338 /* fanotify_init */, 342 /* open_by_handle_at */, 346 /* setns */, 310 /* unshare */, 286 /* add_key */, 287 /* request_key */,
  288 /* keyctl */, 128 /* init_module */, 350 /* finit_module */, 129 /* delete_module */, 283 /* kexec_load */, 79 /* settimeofday */, 25 /* stime */,
  264 /* clock_settime */, 404 /* clock_settime64 */, 343 /* clock_adjtime */, 405 /* clock_adjtime64 */, 103 /* syslog */, 111 /* vhangup */,
  253 /* lookup_dcookie */, 110 /* iopl */, 101 /* ioperm */, 123 /* modify_ldt */, 166 /* vm86 */, 113 /* vm86old */, SINCE_UNIFICATION,
};
#elif defined(__aarch64__)
#define NATIVE AUDIT_ARCH_AARCH64
#define COMPAT AUDIT_ARCH_ARM
#define COMPAT_PRLIMIT 369
#define COMPAT_SOCKET 281
#define COMPAT_SOCKETPAIR 288
#define COMPAT_SOCKETCALL 0 /* only the old kind of program has it, which no 64-bit kernel runs */
static const uint32_t NATIVE_DENIED[] = { ON_EVERY_64_BIT, SINCE_UNIFICATION };
static const uint32_t COMPAT_DENIED[] = {
  21 /* mount */, 52 /* umount2 */, 218 /* pivot_root */, 87 /* swapon */, 115 /* swapoff */, 51 /* acct */, 131 /* quotactl */, 88 /* reboot */,
  26 /* ptrace */, 376 /* process_vm_readv */, 377 /* process_vm_writev */, 378 /* kcmp */, 386 /* bpf */, 364 /* perf_event_open */, 388 /* userfaultfd */,
  367 /* fanotify_init */, 371 /* open_by_handle_at */, 375 /* setns */, 337 /* unshare */, 309 /* add_key */, 310 /* request_key */, 311 /* keyctl */,
  128 /* init_module */, 379 /* finit_module */, 129 /* delete_module */, 347 /* kexec_load */, 401 /* kexec_file_load */, 79 /* settimeofday */, 262 /* clock_settime */,
  404 /* clock_settime64 */, 372 /* clock_adjtime */, 405 /* clock_adjtime64 */, 103 /* syslog */, 111 /* vhangup */, 249 /* lookup_dcookie */,
  SINCE_UNIFICATION,
};
#else
#error "the warden's filter knows x86_64 and aarch64"
#endif

enum {
  COMPAT_CLONE = 120,
  CLONE3 = 435,
  /* Every CLONE_NEW* that clone takes: in its lowest byte, where CLONE_NEWTIME would be, is the signal of the end. */
  NAMESPACES = 0x7e020000,
  /* What the calls with conditions need, and what stands around the tables. */
  MOST_BESIDE_TABLES = 96,
};

/* What programs in a cell have use for. The others reach past its network namespace, or are parts of the kernel that are rarely walked. */
static const uint32_t FAMILIES[] = { AF_UNIX, AF_INET, AF_INET6, AF_NETLINK };

enum { COUNT_FAMILIES = sizeof FAMILIES / sizeof *FAMILIES };
enum { COUNT_NATIVE = sizeof NATIVE_DENIED / sizeof *NATIVE_DENIED, COUNT_COMPAT = sizeof COMPAT_DENIED / sizeof *COMPAT_DENIED };

struct assembly {
  struct sock_filter code[2 * (COUNT_NATIVE + COUNT_COMPAT) + MOST_BESIDE_TABLES];
  unsigned short length;
};

/* What of the native table a liner is made with. */
static const uint32_t FOR_LINERS[] = { SYS_mount, 428 /* open_tree */, 429 /* move_mount */ };

struct table {
  const uint32_t *numbers;
  size_t count;
  uint32_t prlimit; /* 0: not looked at */
  uint32_t clone, socket, socketpair;
  uint32_t socketcall; /* 0: there is none */
  bool makes_liners;
};

static void emit(struct assembly *assembly, struct sock_filter instruction)
{
  assembly->code[assembly->length++] = instruction;
}

static void emit_return(struct assembly *assembly, uint32_t action)
{
  emit(assembly, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, action));
}

/* Only a process's own limits, which it names by 0, may be set. Both machines are little-endian: the low half of an argument comes first. */
static void emit_prlimit(struct assembly *assembly, uint32_t number)
{
  const uint32_t pid = offsetof(struct seccomp_data, args[0]), new_limit = offsetof(struct seccomp_data, args[2]);
  emit(assembly, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 8));
  emit(assembly, (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, pid));
  emit(assembly, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 5, 0));
  emit(assembly, (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, new_limit));
  emit(assembly, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 2));
  emit(assembly, (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, new_limit + 4));
  emit(assembly, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 1, 0));
  emit_return(assembly, SECCOMP_RET_ERRNO | EPERM);
  emit_return(assembly, SECCOMP_RET_ALLOW);
}

/* The flags are the first argument on every machine that we know. */
static void emit_clone(struct assembly *assembly, const struct table *table)
{
  const uint32_t allowed = table->makes_liners ? LINER_NAMESPACES : 0;
  emit(assembly, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, table->clone, 0, 6));
  emit(assembly, (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[0])));
  emit(assembly, (struct sock_filter)BPF_STMT(BPF_ALU | BPF_AND | BPF_K, NAMESPACES));
  emit(assembly, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 2, 0));
  emit(assembly, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, allowed, 1, 0));
  emit_return(assembly, SECCOMP_RET_ERRNO | EPERM);
  emit_return(assembly, SECCOMP_RET_ALLOW);
}

static void emit_family(struct assembly *assembly, uint32_t number)
{
  emit(assembly, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, COUNT_FAMILIES + 3));
  emit(assembly, (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[0])));
  for (uint8_t i = 0; i < COUNT_FAMILIES; i++)
    emit(assembly, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, FAMILIES[i], (uint8_t)(COUNT_FAMILIES - i), 0));
  emit_return(assembly, SECCOMP_RET_ERRNO | EAFNOSUPPORT);
  emit_return(assembly, SECCOMP_RET_ALLOW);
}

/* As if the kernel had no such call: what it is asked for stands behind a pointer, and libraries then use calls that can be looked into. */
static void emit_missing(struct assembly *assembly, uint32_t number)
{
  emit(assembly, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1));
  emit_return(assembly, SECCOMP_RET_ERRNO | ENOSYS);
}

static bool is_for_liners(uint32_t number)
{
  for (size_t i = 0; i < sizeof FOR_LINERS / sizeof *FOR_LINERS; i++)
    if (FOR_LINERS[i] == number) return true;
  return false;
}

static void emit_table(struct assembly *assembly, const struct table *table)
{
  emit(assembly, (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)));
#ifdef X32_BIT
  emit(assembly, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, X32_BIT, 0, 1));
  emit_return(assembly, SECCOMP_RET_ERRNO | ENOSYS);
#endif
  if (table->prlimit) emit_prlimit(assembly, table->prlimit);
  emit_clone(assembly, table);
  emit_family(assembly, table->socket);
  emit_family(assembly, table->socketpair);
  emit_missing(assembly, CLONE3);
  if (table->socketcall) emit_missing(assembly, table->socketcall);
  for (size_t i = 0; i < table->count; i++) {
    if (table->makes_liners && is_for_liners(table->numbers[i])) continue;
    emit(assembly, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, table->numbers[i], 0, 1));
    emit_return(assembly, SECCOMP_RET_ERRNO | EPERM);
  }
  emit_return(assembly, SECCOMP_RET_ALLOW);
}

int self_filter_load(const struct self_filter *wanted)
{
  const struct table native = {
    .numbers = NATIVE_DENIED,
    .count = COUNT_NATIVE,
    .prlimit = wanted->guests_share_id ? SYS_prlimit64 : 0,
    .clone = SYS_clone,
    .socket = SYS_socket,
    .socketpair = SYS_socketpair,
    .makes_liners = wanted->makes_liners,
  };
  const struct table compat = {
    .numbers = COMPAT_DENIED,
    .count = COUNT_COMPAT,
    .prlimit = wanted->guests_share_id ? COMPAT_PRLIMIT : 0,
    .clone = COMPAT_CLONE,
    .socket = COMPAT_SOCKET,
    .socketpair = COMPAT_SOCKETPAIR,
    .socketcall = COMPAT_SOCKETCALL,
  };
  struct assembly assembly = { .length = 0 };
  emit(&assembly, (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)));
  emit(&assembly, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, NATIVE, 1, 0));
  unsigned short skip = assembly.length;
  emit(&assembly, (struct sock_filter)BPF_STMT(BPF_JMP | BPF_JA, 0));
  emit_table(&assembly, &native);
  assembly.code[skip].k = (uint32_t)(assembly.length - skip - 1);
  emit(&assembly, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, COMPAT, 1, 0));
  emit_return(&assembly, SECCOMP_RET_ERRNO | ENOSYS);
  emit_table(&assembly, &compat);
  struct sock_fprog program = { .len = assembly.length, .filter = assembly.code };
  return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program);
}
