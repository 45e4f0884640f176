/*
 * Rights that a ruleset handles are refused wherever no rule grants them. Handled are only those of starting programs and of reading files, so that
 * listing, writing and making stay what the mounts and modes make of them. Moving between folders is handled too: Landlock refuses it
 * to everyone who is under any ruleset, and only by a rule can it be given back.
 */
#include "rules.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "wire.h"

/* The kernel's own; older headers have none of them. */
enum { LANDLOCK_CREATE_RULESET = 444, LANDLOCK_ADD_RULE = 445, LANDLOCK_RESTRICT_SELF = 446 };
enum { CREATE_VERSION = 1, RULE_PATH_BENEATH = 1, LEAST_VERSION = 2 };
static const uint64_t FS_EXECUTE = UINT64_C(1) << 0, FS_READ_FILE = UINT64_C(1) << 2, FS_REFER = UINT64_C(1) << 13;

struct ruleset_attribute {
  uint64_t handled_fs;
};

struct path_beneath_attribute {
  uint64_t allowed;
  int32_t parent;
} __attribute__((packed));

struct rules_reader rules_read(const uint8_t *bytes, size_t length)
{
  if (length < 4) return (struct rules_reader){ .why = "RULES is cut short" };
  return (struct rules_reader){ .at = bytes + 4, .left = length - 4, .rest = wire_u32(bytes) };
}

static const char *fault_in(const struct rules_reader *reader, const struct file_rule *rule)
{
  if (!rule->access || rule->access > (RULES_EXECUTE | RULES_READ | RULES_MOVE)) return "RULES has an unknown access";
  if (rule->length > RULES_PATH_MOST) return "RULES has too long a path";
  if (rule->length > reader->left - 8) return "RULES is cut short";
  if (!rule->length || rule->path[0] != '/') return "RULES has a path that does not begin with /";
  return memchr(rule->path, 0, rule->length) ? "RULES has a NUL in a path" : NULL;
}

bool rules_next(struct rules_reader *reader, struct file_rule *rule)
{
  if (reader->why) return false;
  if (!reader->rest) {
    if (reader->left) reader->why = "RULES has bytes after its end";
    return false;
  }
  if (reader->left < 8) {
    reader->why = "RULES is cut short";
    return false;
  }
  *rule = (struct file_rule){ .access = wire_u32(reader->at), .length = wire_u32(reader->at + 4), .path = reader->at + 8 };
  reader->why = fault_in(reader, rule);
  if (reader->why) return false;
  reader->at += 8 + (size_t)rule->length;
  reader->left -= 8 + (size_t)rule->length;
  reader->rest--;
  return true;
}

static const char *fault(struct rules *rules, const char *verb, const char *object)
{
  snprintf(rules->why, sizeof rules->why, "%s %.120s: %s", verb, object, strerror(errno));
  return rules->why;
}

static const char *open_ruleset(struct rules *rules)
{
  long version = syscall(LANDLOCK_CREATE_RULESET, NULL, 0, CREATE_VERSION);
  if (version < 0) return fault(rules, "make file rules by", "Landlock, which this kernel does not offer");
  /* The first version refuses every move between folders. */
  errno = EOPNOTSUPP;
  if (version < LEAST_VERSION) return fault(rules, "make file rules by", "Landlock, of which this kernel has too old a version");
  const struct ruleset_attribute attribute = { .handled_fs = FS_EXECUTE | FS_READ_FILE | FS_REFER };
  rules->fd = (int)syscall(LANDLOCK_CREATE_RULESET, &attribute, sizeof attribute, 0);
  return rules->fd < 0 ? fault(rules, "make", "file rules") : NULL;
}

static const char *add_rule(struct rules *rules, const struct file_rule *rule)
{
  char path[RULES_PATH_MOST + 1];
  memcpy(path, rule->path, rule->length);
  path[rule->length] = 0;
  int parent = open(path, O_PATH | O_CLOEXEC);
  /* What cannot be reached gets no rule, and so no right. */
  if (parent < 0) return errno == ENOENT || errno == ENOTDIR || errno == EACCES ? NULL : fault(rules, "open", path);
  struct stat entry;
  uint64_t allowed = (rule->access & RULES_EXECUTE ? FS_EXECUTE : 0) | (rule->access & RULES_READ ? FS_READ_FILE : 0);
  const char *why = fstat(parent, &entry) < 0 ? fault(rules, "look at", path) : NULL;
  /* A right of folders in a rule for something else would be refused. */
  if (rule->access & RULES_MOVE && !why && S_ISDIR(entry.st_mode)) allowed |= FS_REFER;
  const struct path_beneath_attribute attribute = { .allowed = allowed, .parent = parent };
  if (!why && allowed && syscall(LANDLOCK_ADD_RULE, rules->fd, RULE_PATH_BENEATH, &attribute, 0) < 0) why = fault(rules, "make a rule for", path);
  close(parent);
  return why;
}

const char *rules_load(struct rules *rules, const uint8_t *bytes, size_t length)
{
  struct file_rule rule;
  struct rules_reader judged = rules_read(bytes, length), reader = judged;
  while (rules_next(&judged, &rule)) { }
  if (judged.why) return judged.why;
  const char *why = open_ruleset(rules);
  if (why) return why;
  rules->given = true;
  while (!why && rules_next(&reader, &rule)) why = add_rule(rules, &rule);
  return why;
}

int rules_obey(const struct rules *rules)
{
  return rules->given ? (int)syscall(LANDLOCK_RESTRICT_SELF, rules->fd, 0) : 0;
}
