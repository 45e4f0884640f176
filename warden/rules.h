/* The file rules of RULES: taken apart, and made into a Landlock ruleset that each program puts itself under. */
#ifndef GLOVEBOX_RULES_H
#define GLOVEBOX_RULES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { RULES_PATH_MOST = 4095, RULES_WHY_MOST = 200 };
enum rules_access { RULES_EXECUTE = 1, RULES_READ = 2, RULES_MOVE = 4 };

struct rules {
  bool given;
  int fd; /* the ruleset; only when `given` */
  char why[RULES_WHY_MOST];
};

/* Pure: reads one rule after another out of a payload. */
struct rules_reader {
  const uint8_t *at;
  size_t left;
  uint32_t rest;   /* rules that are still to come */
  const char *why; /* set when the payload is malformed */
};

struct file_rule {
  uint32_t access;
  const uint8_t *path; /* without NUL, neither in it nor behind it */
  uint32_t length;
};

struct rules_reader rules_read(const uint8_t *bytes, size_t length);
/* False at the end, and when the rest is malformed. */
bool rules_next(struct rules_reader *reader, struct file_rule *rule);

/* NULL, or why the cell must end: malformed, or not to be had of this kernel. */
const char *rules_load(struct rules *rules, const uint8_t *bytes, size_t length);
/* The calling process and all it starts are held to the rules from now on. Needs no_new_privs. 0, or -1 with errno. */
int rules_obey(const struct rules *rules);

#endif
