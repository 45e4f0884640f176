/* Command lines. What ends a program ends only the attempt here. */
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../arguments.h"
#include "../die.h"
#include "../launcher.h"
#include "escape.h"
#include "tries.h"

enum { WORDS_MOST = 512 };

#define CHECK(condition) \
  do { \
    if (!(condition)) { \
      fprintf(stderr, "promise broken: %s\n", #condition); \
      abort(); \
    } \
  } while (0)

_Noreturn void die(const char *verb, const char *object)
{
  CHECK(*verb && object);
  longjmp(*escape_place(), 1);
}

_Noreturn void fail(const char *verb, const char *object)
{
  die(verb, object);
}

/* The words, each a copy of its own so that one byte too far is seen; how many. */
static int split(const uint8_t *bytes, size_t length, char **words)
{
  int count = 0;
  for (size_t at = 0; at < length && count < WORDS_MOST;) {
    size_t size = strnlen((const char *)bytes + at, length - at);
    char *word = malloc(size + 1);
    memcpy(word, bytes + at, size);
    word[size] = 0;
    words[count++] = word;
    at += size + 1;
  }
  words[count] = NULL;
  return count;
}

int words_try_warden(const uint8_t *bytes, size_t length)
{
  static struct arguments arguments;
  char *words[WORDS_MOST + 1];
  int count = split(bytes, length, words);
  volatile int understood = 0;
  memset(&arguments, 0, sizeof arguments);
  if (!setjmp(*escape_place())) {
    arguments_parse(&arguments, words);
    understood = 1;
    CHECK(arguments.veils.count <= ARGUMENTS_PATHS_MOST && arguments.place_count <= ARGUMENTS_PATHS_MOST && arguments.join_count <= WARDEN_JOINS_MOST);
    CHECK(arguments.enter_count <= WARDEN_JOINS_MOST);
    CHECK(!arguments.doors.direct || arguments.doors.proxy);
    for (size_t i = 0; i < arguments.join_count; i++) CHECK(arguments.joins[i].fd >= 3 && (!arguments.joins[i].file || !strchr(arguments.joins[i].file, '/')));
  }
  for (int i = 0; i < count; i++) free(words[i]);
  return understood;
}

int words_try_launcher(const uint8_t *bytes, size_t length)
{
  static struct options options;
  char *words[WORDS_MOST + 1];
  int count = split(bytes, length, words);
  volatile int understood = 0;
  if (!setjmp(*escape_place())) {
    parse_options(&options, count, words);
    understood = 1;
    CHECK(options.program > words && options.program < words + count && options.stages <= MOST_STAGES && options.mounts <= MOST_MOUNTS);
    for (size_t i = 0; i < options.stages; i++) CHECK(options.stage[i].name[0] != '.' && !strchr(options.stage[i].name, '/'));
    for (size_t i = 0; i < options.opens; i++) CHECK(options.open[i].fd >= 3 && options.open[i].fd < FIRST_OWN_FD);
    CHECK(!options.rootless || (options.uses_runtime && !options.mounts && !options.devices));
  }
  for (int i = 0; i < count; i++) free(words[i]);
  return understood;
}
