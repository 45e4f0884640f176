/*
 * The seccomp filter that a process loaded last. Only a tracer of a stopped process may ask the kernel for that, and only with CAP_SYS_ADMIN. The
 * process is seized and interrupted, which sends it no signal: a system call in which it waits is begun again when it is let go, and its
 * parent hears nothing. Should whoever reads be killed meanwhile, the kernel lets the process go.
 */
#ifndef NEWEST_FILTER_H
#define NEWEST_FILTER_H

#include <linux/filter.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct filter_reading {
  /* Instructions; none where it has no filter. */
  size_t length;
  struct sock_filter code[BPF_MAXINSNS];
  /* What could not be done, when that is so; errno says why. */
  const char *verb, *object;
};

/* Reads a pid in digits, to the end of the line or of all; 0 when none came, -1 when that was no pid. */
pid_t read_pid(int fd);
/* False when it could not be read; the process goes on either way. */
bool read_newest_filter(pid_t pid, struct filter_reading *reading);
bool write_all(int fd, const void *bytes, size_t length);

#endif
