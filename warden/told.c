#include "told.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/klog.h>
#include <unistd.h>

#include "die.h"

enum { READ_ALL = 3, LOG_MOST = 256, PATH_MOST = 64 };

struct sheet {
  uint8_t *text;
  size_t length, most;
};

/* An empty text where it cannot be read, which is as good as one that says nothing. */
static void add(struct sheet *sheet, int fd)
{
  ssize_t got = 0;
  while (fd >= 0 && sheet->length + 1 < sheet->most && (got = read(fd, sheet->text + sheet->length, sheet->most - sheet->length - 1)) > 0) sheet->length += (size_t)got;
  if (fd >= 0) close(fd);
  sheet->text[sheet->length++] = 0;
}

static void add_file(struct sheet *sheet, const char *path)
{
  add(sheet, open(path, O_RDONLY | O_CLOEXEC));
}

static void add_log(struct sheet *sheet)
{
  int got = klogctl(READ_ALL, (char *)sheet->text + sheet->length, LOG_MOST);
  if (got > 0) sheet->length += (size_t)got;
  sheet->text[sheet->length++] = 0;
}

struct told *told_begin(void)
{
  struct told *told = malloc(sizeof *told);
  if (!told) die("allocate", "what the kernel says");
  struct sheet sheet = { .text = told->text, .most = TOLD_MOST };
  add_file(&sheet, "/proc/version");
  add_log(&sheet);
  add_file(&sheet, "/proc/self/mountinfo");
  add_file(&sheet, "/proc/self/net/dev");
  told->length = sheet.length;
  told->status = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
  if (told->status < 0) die("open", "/proc/self/status");
  return told;
}

void told_finish(struct told *told)
{
  struct sheet sheet = { .text = told->text, .length = told->length, .most = TOLD_MOST };
  add(&sheet, told->status);
  told->length = sheet.length;
}

size_t told_of_program(pid_t pid, uint8_t *text)
{
  struct sheet sheet = { .text = text, .most = TOLD_OF_PROGRAM_MOST };
  char path[PATH_MOST];
  for (const char **name = (const char *[]){ "status", "limits", NULL }; *name; name++) {
    snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, *name);
    add_file(&sheet, path);
  }
  return sheet.length;
}
