#include "seccomp-ahead.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <unistd.h>

/* From here up a number carries the x32 bit, or is none: the filter itself decides about these. */
enum { FIRST_ODD_NUMBER = 0x40000000 };

int ahead_add(struct ahead *ahead, uint32_t number, uint32_t action) {
  if (ahead->count == sizeof ahead->calls / sizeof *ahead->calls) return -1;
  ahead->calls[ahead->count].number = number;
  ahead->calls[ahead->count++].action = action;
  return 0;
}

void ahead_know(struct ahead *ahead, uint32_t number) {
  if (number > ahead->highest) ahead->highest = number;
}

static int write_all(int to, const struct sock_filter *code, size_t length) {
  ssize_t bytes = (ssize_t)(length * sizeof *code);
  ssize_t written = write(to, code, (size_t)bytes);
  if (written >= 0 && written < bytes) errno = EIO;
  return written == bytes ? 0 : -1;
}

int ahead_write(const struct ahead *ahead, uint32_t arch, int to) {
  struct sock_filter code[4 + 2 * 8 + 3];
  unsigned length = 0;
  if (ahead->count == 0 && !ahead->has_above && ahead->length == 0) return 0;
  unsigned rest = 1 + 2 * ahead->count + (ahead->has_above ? 3 : 0) + (unsigned)ahead->length;
  code[length++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch));
  code[length++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, arch, 1, 0);
  code[length++] = (struct sock_filter)BPF_STMT(BPF_JMP | BPF_JA, rest);
  code[length++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
  for (unsigned i = 0; i < ahead->count; i++) {
    code[length++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ahead->calls[i].number, 0, 1);
    code[length++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, ahead->calls[i].action);
  }
  if (ahead->has_above) {
    code[length++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, FIRST_ODD_NUMBER, 2, 0);
    code[length++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, ahead->highest, 0, 1);
    code[length++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, ahead->above);
  }
  return write_all(to, code, length) < 0 ? -1 : write_all(to, ahead->code, ahead->length);
}
