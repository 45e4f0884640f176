/* What a program becomes once it may: the guest's, or the file worker. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "files.h"
#include "keeper.h"
#include "program.h"

static const char *value_of(char **envp, const char *name)
{
  size_t length = strlen(name);
  for (; *envp; envp++)
    if (!strncmp(*envp, name, length) && (*envp)[length] == '=') return *envp + length + 1;
  return NULL;
}

/* Tries `folder/name` for each folder of PATH; leaves the errno that tells most: one that forbids beats one that lacks. */
static void exec_along(const char *path, const struct start *start)
{
  char file[8192];
  int told = ENOENT;
  for (const char *at = path; at;) {
    size_t length = strcspn(at, ":");
    const char *name = start->argv[0];
    if (length + 1 + strlen(name) + 1 <= sizeof file) {
      memcpy(file, at, length);
      file[length] = '/';
      strcpy(file + length + (length ? 1 : 0), name);
      execve(file, start->argv, start->envp);
      if (errno != ENOENT && errno != ENOTDIR) told = errno;
      if (errno != ENOENT && errno != ENOTDIR && errno != EACCES) break;
    }
    at = at[length] ? at + length + 1 : NULL;
  }
  errno = told;
}

static void execute(const struct start *start)
{
  const char *path = value_of(start->envp, "PATH");
  if (strchr(start->argv[0], '/')) execve(start->argv[0], start->argv, start->envp);
  else if (start->argv[0][0] && path) exec_along(path, start);
  else errno = ENOENT;
}

/* What it needs of START it has been given; its end of the status closes as it would by execve. */
static _Noreturn void serve_files(const struct child *child)
{
  int layers = child->start->layers ? LAYERS_FD : -1;
  start_free(child->start);
  close(child->status);
  _exit(files_worker(0, 1, layers));
}

_Noreturn void become_program(const struct plan *plan, int status)
{
  struct child child = program_child(plan, status);
  program_reach_gate(&child, plan);
  if (child.start->worker) serve_files(&child);
  execute(child.start);
  struct failure failure = { .stage = STAGE_EXEC };
  failure_note(&failure, "execute", child.start->argv[0]);
  program_fail(&child, &failure);
}
