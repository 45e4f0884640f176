/** Runtimes that do other than they were told, each a real one behind a small program of ours. */
import { execFileSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { programPath } from '../../../src/cell/facts.js'
import type { RuntimeName } from '../../../src/drivers/oci/runtimes.js'

export interface Lie {
  /** A program for `sed` that changes what the runtime is told of the container. */
  readonly config?: string
  /** A script of the shell, where the runtime is started; the folder of the bundle is its first word. */
  readonly before?: string
  /** Leaves this folder open for whoever it starts. */
  readonly leaks?: string
  /** Makes the container and does not start it, as one does that is killed between the two. */
  readonly halts?: boolean
}

/** No shell script: the launcher starts what it has open, and that takes a program. */
const source = (runtime: string, { config = '', before = '', leaks = '', halts = false }: Lie): string => `
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const char leaks[] = ${JSON.stringify(leaks)};

static void run(char *const words[])
{
  int status;
  pid_t child = fork();
  if (child == 0) {
    execv(words[0], words);
    _exit(7);
  }
  if (waitpid(child, &status, 0) != child || status != 0) _exit(6);
}

static void prepare(char *bundle)
{
  static char config[] = ${JSON.stringify(config)}, before[] = ${JSON.stringify(before)};
  char path[4096];
  snprintf(path, sizeof path, "%s/config.json", bundle);
  if (config[0]) run((char *[]){ "/bin/sed", "-i", config, path, NULL });
  if (before[0]) run((char *[]){ "/bin/sh", "-c", before, "sh", bundle, NULL });
}

int main(int argc, char **argv)
{
  char **words = calloc((size_t)argc + 3, sizeof *words);
  char count[16];
  int handed = 0, at = 0;
  for (int i = 0; i < argc; i++) {
    if (strcmp(argv[i], "--preserve-fds") == 0) {
      handed = atoi(argv[++i]);
      continue;
    }
    if (strcmp(argv[i], "--bundle") == 0) {
      prepare(argv[i + 1]);
      if (leaks[0] && dup2(open(leaks, O_RDONLY | O_DIRECTORY), 3 + handed++) < 0) return 9;
      snprintf(count, sizeof count, "%d", handed);
      if (handed > 0) words[at++] = "--preserve-fds";
      if (handed > 0) words[at++] = count;
    }
    if (${halts ? 1 : 0} && strcmp(argv[i], "--detach") == 0) continue;
    words[at++] = ${halts ? 1 : 0} && strcmp(argv[i], "run") == 0 ? "create" : argv[i];
  }
  execv(${JSON.stringify(runtime)}, words);
  return 8;
}
`

/** The path of such a runtime, made in a folder of its own. */
export function lyingRuntime(name: RuntimeName, lie: Lie, folder: string): string {
  mkdirSync(folder, { recursive: true })
  const [file, program] = [join(folder, 'lying.c'), join(folder, name)]
  writeFileSync(file, source(programPath(name) ?? '', lie))
  execFileSync('gcc', ['-static', '-o', program, file])
  return program
}
