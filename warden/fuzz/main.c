/*
 * fuzz-warden SEED SECONDS KIND: feeds mutated inputs of one kind, or of every kind, to the parsers of the native programs, built with AddressSanitizer and
 * UBSan, and checks what they promise. A child does it, with its current input in shared memory, so that the input that killed it can be shown.
 * fuzz-warden --reproduce KIND FILE: that one input again, without a child.
 * fuzz-warden --seeds KIND FOLDER: writes inputs to begin with, for a fuzzer that is led by what it covers.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tries.h"

enum { SEEDS = 40 };

struct stage {
  uint32_t kind;
  struct input input;
  struct counts counts;
  uint64_t done;
};

static void try_stage(struct stage *stage)
{
  size_t length = stage->input.length;
  uint8_t *bytes = malloc(length ? length : 1);
  memcpy(bytes, stage->input.bytes, length);
  try_input(stage->kind, bytes, length, &stage->counts);
  free(bytes);
  stage->done++;
}

/* INPUT_KINDS: of every kind by turns. */
static void fuzz(struct stage *stage, uint64_t seed, long seconds, uint32_t kind)
{
  struct chance chance = { seed };
  time_t end = time(NULL) + seconds;
  while (time(NULL) < end)
    for (int i = 0; i < 1000; i++) {
      stage->kind = kind == INPUT_KINDS ? chance_below(&chance, INPUT_KINDS) : kind;
      input_make(&stage->input, &chance, stage->kind);
      try_stage(stage);
    }
}

static int reproduce(struct stage *stage, const char *kind, const char *path)
{
  stage->kind = (uint32_t)atoi(kind);
  FILE *file = fopen(path, "re");
  if (!file) return 2;
  stage->input.length = fread(stage->input.bytes, 1, INPUT_MOST, file);
  fclose(file);
  try_stage(stage);
  printf("nothing found\n");
  return 0;
}

static int write_seeds(struct stage *stage, const char *kind, const char *folder)
{
  struct chance chance = { 1 };
  char path[4096];
  for (int i = 0; i < SEEDS; i++) {
    input_make(&stage->input, &chance, (uint32_t)atoi(kind));
    snprintf(path, sizeof path, "%s/seed-%d", folder, i);
    FILE *file = fopen(path, "we");
    if (!file || fwrite(stage->input.bytes, 1, stage->input.length, file) != stage->input.length || fclose(file)) return 2;
  }
  return 0;
}

static int report(const struct stage *stage, int status)
{
  printf("fuzz: %llu inputs, %llu well-formed parts, %llu malformed\n", (unsigned long long)stage->done, (unsigned long long)stage->counts.whole, (unsigned long long)stage->counts.malformed);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return 0;
  printf("fuzz: FOUND with an input of kind %u:\n", stage->kind);
  for (size_t i = 0; i < stage->input.length; i++) printf("%02x", stage->input.bytes[i]);
  printf("\n");
  return 1;
}

int main(int argc, char **argv)
{
  struct stage *stage = mmap(NULL, sizeof *stage, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (stage == MAP_FAILED || argc != 4) return 2;
  if (!strcmp(argv[1], "--reproduce")) return reproduce(stage, argv[2], argv[3]);
  if (!strcmp(argv[1], "--seeds")) return write_seeds(stage, argv[2], argv[3]);
  uint64_t seed = strtoull(argv[1], NULL, 10);
  printf("fuzz: seed %llu, %s s\n", (unsigned long long)seed, argv[2]);
  fflush(stdout);
  pid_t child = fork();
  if (child == 0) {
    fuzz(stage, seed, atol(argv[2]), (uint32_t)atoi(argv[3]));
    _exit(0);
  }
  int status;
  if (child < 0 || waitpid(child, &status, 0) < 0) return 2;
  return report(stage, status);
}
