/*
 * Compiles a system-call filter: rules on stdin, one a line, become an array of struct sock_filter on stdout.
 *
 *   default ACTION                                 first line: what meets a call that no rule names
 *   foreign ACTION                                 what meets the entry points of other architectures (i386 and x32 on x86_64)
 *   rule ACTION CALL [INDEX OP VALUE [VALUE2]]...  all conditions of a line must hold; lines of one call are alternatives
 *   maybe ACTION CALL ...                          the same, but a call with an unknown name is left out
 *   first ACTION CALL                              ahead of all rules, whatever they say
 *   known CALL                                     counts as named by a rule
 *   above ACTION                                   what meets calls with numbers above every one that is named
 *
 * ACTION is allow, log, trap, kill-thread, kill-process or errno:NUMBER; CALL a name or a number; OP one of ne, lt, le, eq, ge,
 * gt, and masked-eq (VALUE is the mask then). A call that the architecture does not have is left out, and so is a rule that says what the
 * default says. All decisions are made by whoever wrote the lines; an error names its line, and nothing is written to stdout then.
 */
#define _GNU_SOURCE
#include "seccomp-ahead.h"
#include "seccomp-calls.h"
#include "seccomp-conditions.h"
#include "seccomp-ranges.h"

#include <errno.h>
#include <seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <unistd.h>

enum { MAX_ARGS = RULE_MOST_CONDITIONS, MAX_WORDS = 3 + MAX_ARGS * 4, RANGES_ROOM = 1024 };

struct compilation {
  uint32_t arch;
  scmp_filter_ctx filter; /* of all rules without conditions: it tells which of them libseccomp refuses */
  uint32_t foreign;
  int has_foreign;
  struct ahead ahead;
  struct ranges ranges;
  struct rule *rules;
  size_t count, conditional;
  unsigned line;
};

static int refuse(const struct compilation *c, const char *what, const char *object) {
  fprintf(stderr, "seccomp-compile: line %u: %s: %s\n", c->line, object, what);
  return -1;
}

static int parse_action(const char *word, uint32_t *action) {
  static const struct { const char *name; uint32_t action; } actions[] = {
      {"allow", SCMP_ACT_ALLOW}, {"log", SCMP_ACT_LOG}, {"trap", SCMP_ACT_TRAP},
      {"kill-thread", SCMP_ACT_KILL_THREAD}, {"kill-process", SCMP_ACT_KILL_PROCESS},
  };
  for (size_t i = 0; i < sizeof actions / sizeof *actions; i++)
    if (strcmp(actions[i].name, word) == 0) return *action = actions[i].action, 0;
  if (strncmp(word, "errno:", 6) != 0) return -1;
  char *end;
  unsigned long number = strtoul(word + 6, &end, 10);
  if (word[6] == '\0' || *end != '\0' || number > 4095) return -1;
  *action = SCMP_ACT_ERRNO(number);
  return 0;
}

static int parse_value(const char *word, uint64_t *value) {
  char *end;
  if (word == NULL || word[0] < '0' || word[0] > '9') return -1;
  errno = 0;
  *value = strtoull(word, &end, 0);
  return errno == 0 && *end == '\0' ? 0 : -1;
}

static int parse_operator(const char *word, enum scmp_compare *op) {
  static const struct { const char *name; enum scmp_compare op; } operators[] = {
      {"ne", SCMP_CMP_NE}, {"lt", SCMP_CMP_LT}, {"le", SCMP_CMP_LE}, {"eq", SCMP_CMP_EQ},
      {"ge", SCMP_CMP_GE}, {"gt", SCMP_CMP_GT}, {"masked-eq", SCMP_CMP_MASKED_EQ},
  };
  for (size_t i = 0; i < sizeof operators / sizeof *operators; i++)
    if (strcmp(operators[i].name, word) == 0) return *op = operators[i].op, 0;
  return -1;
}

/* Reads conditions until the words end (a NULL); the number of them, or -1. */
static int parse_conditions(const struct compilation *c, char **word, struct scmp_arg_cmp *conditions) {
  int count = 0;
  while (*word != NULL) {
    struct scmp_arg_cmp *condition = &conditions[count];
    uint64_t index;
    if (count == MAX_ARGS) return refuse(c, "more conditions than a call has arguments", *word);
    if (parse_value(*word, &index) < 0 || index >= MAX_ARGS) return refuse(c, "no argument index from 0 to 5", *word);
    for (int i = 0; i < count; i++)
      if (conditions[i].arg == index) return refuse(c, "argument index stands twice", *word);
    condition->arg = (unsigned)index;
    if (*++word == NULL || parse_operator(*word, &condition->op) < 0) return refuse(c, "no operator", *word ? *word : "end of line");
    if (parse_value(*++word, &condition->datum_a) < 0) return refuse(c, "no number", *word ? *word : "end of line");
    condition->datum_b = 0;
    if (condition->op == SCMP_CMP_MASKED_EQ && parse_value(*++word, &condition->datum_b) < 0)
      return refuse(c, "no second number", *word ? *word : "end of line");
    word++;
    count++;
  }
  return count;
}

static int keep_rule(struct compilation *c, const struct rule *rule) {
  struct rule *rules = reallocarray(c->rules, c->count + 1, sizeof *rules);
  if (rules == NULL) return refuse(c, strerror(errno), "rule");
  c->rules = rules;
  c->rules[c->count++] = *rule;
  ranges_note(&c->ranges, rule->number, rule->action, rule->matched);
  return 0;
}

static int add_conditional(struct compilation *c, const struct rule *rule, const char *call) {
  for (size_t i = 0; i < c->count; i++) {
    if (!conditions_are_same(&c->rules[i], rule)) continue;
    return c->rules[i].action == rule->action ? 0 : refuse(c, "an earlier rule answers the same conditions otherwise", call);
  }
  if (c->conditional == RULES_MOST_CONDITIONAL) return refuse(c, "more rules with conditions than a filter can hold", call);
  c->conditional++;
  return keep_rule(c, rule);
}

static int add_rule(struct compilation *c, char **words, int count) {
  struct rule rule = {0};
  if (count < 3) return refuse(c, "too few words", words[0]);
  if (parse_action(words[1], &rule.action) < 0) return refuse(c, "no action", words[1]);
  int call = find_call(c->arch, words[2]);
  if (call == CALL_ABSENT || (call == CALL_UNKNOWN && strcmp(words[0], "maybe") == 0)) return 0;
  if (call == CALL_UNKNOWN) return refuse(c, "unknown system call", words[2]);
  if (call == CALL_FOREIGN) return refuse(c, "can only be compiled on the architecture it is for", words[2]);
  rule.call = call;
  rule.matched = parse_conditions(c, words + 3, rule.conditions);
  if (rule.matched < 0) return -1;
  rule.number = (uint32_t)call_number(c->arch, words[2]);
  ahead_know(&c->ahead, rule.number);
  if (rule.matched > 0) return add_conditional(c, &rule, words[2]);
  /* What says the same as the default adds nothing, and libseccomp refuses it. */
  if (rule.action == c->ranges.fallback) return 0;
  int error = seccomp_rule_add_exact_array(c->filter, rule.action, call, 0, NULL);
  if (error < 0) return refuse(c, strerror(-error), words[2]);
  return keep_rule(c, &rule);
}

static int add_first(struct compilation *c, char **words, int count) {
  uint32_t action;
  if (count != 3) return refuse(c, "too few words or too many", words[0]);
  if (parse_action(words[1], &action) < 0) return refuse(c, "no action", words[1]);
  int number = call_number(c->arch, words[2]);
  if (number == CALL_ABSENT) return 0;
  if (number < 0) return refuse(c, "unknown system call", words[2]);
  ahead_know(&c->ahead, (uint32_t)number);
  return ahead_add(&c->ahead, (uint32_t)number, action) < 0 ? refuse(c, "too many lines like it", words[0]) : 0;
}

static int add_known(struct compilation *c, char **words, int count) {
  if (count != 2) return refuse(c, "too few words or too many", words[0]);
  int number = call_number(c->arch, words[1]);
  if (number >= 0) ahead_know(&c->ahead, (uint32_t)number);
  return 0;
}

static int set_above(struct compilation *c, char **words, int count) {
  if (count != 2 || parse_action(words[1], &c->ahead.above) < 0) return refuse(c, "no action", count > 1 ? words[1] : words[0]);
  c->ahead.has_above = 1;
  return 0;
}

/* Without a rule, for the architecture that is compiled for. NULL when libseccomp refuses that. */
static scmp_filter_ctx new_filter(const struct compilation *c) {
  scmp_filter_ctx filter = seccomp_init(c->ranges.fallback);
  if (filter == NULL) return NULL;
  int is_foreign = c->arch != seccomp_arch_native();
  if (is_foreign && (seccomp_arch_add(filter, c->arch) < 0 || seccomp_arch_remove(filter, SCMP_ARCH_NATIVE) < 0)) return seccomp_release(filter), NULL;
  return filter;
}

static int begin(struct compilation *c, char **words, int count) {
  uint32_t action;
  if (c->filter != NULL) return refuse(c, "stands twice", words[0]);
  if (count != 2 || parse_action(words[1], &action) < 0) return refuse(c, "no action", count > 1 ? words[1] : words[0]);
  c->ranges.fallback = action;
  c->filter = new_filter(c);
  return c->filter == NULL ? refuse(c, "libseccomp does not compile it", words[1]) : 0;
}

static int take_line(struct compilation *c, char *text) {
  char *words[MAX_WORDS + 1] = {NULL};
  int count = 0;
  for (char *rest, *word = strtok_r(text, " \n", &rest); word != NULL; word = strtok_r(NULL, " \n", &rest)) {
    if (count == MAX_WORDS) return refuse(c, "too many words", word);
    words[count++] = word;
  }
  if (count == 0) return 0;
  if (strcmp(words[0], "default") == 0) return begin(c, words, count);
  if (c->filter == NULL) return refuse(c, "the default must come first", words[0]);
  if (strcmp(words[0], "rule") == 0 || strcmp(words[0], "maybe") == 0) return add_rule(c, words, count);
  if (strcmp(words[0], "first") == 0) return add_first(c, words, count);
  if (strcmp(words[0], "known") == 0) return add_known(c, words, count);
  if (strcmp(words[0], "above") == 0) return set_above(c, words, count);
  if (strcmp(words[0], "foreign") != 0) return refuse(c, "unknown first word", words[0]);
  if (count != 2 || parse_action(words[1], &c->foreign) < 0) return refuse(c, "no action", count > 1 ? words[1] : words[0]);
  int error = seccomp_attr_set(c->filter, SCMP_FLTATR_ACT_BADARCH, c->foreign);
  if (error < 0) return refuse(c, strerror(-error), words[0]);
  c->has_foreign = 1;
  return 0;
}

static int take_lines(struct compilation *c) {
  char *text = NULL;
  size_t size = 0;
  int status = 0;
  while (status == 0 && getline(&text, &size, stdin) >= 0) {
    c->line++;
    status = take_line(c, text);
  }
  free(text);
  if (status == 0 && c->filter == NULL) return refuse(c, "no rules", "standard input");
  return status;
}

static int copy_all(int from, int to) {
  off_t at = 0;
  off_t end = lseek(from, 0, SEEK_END);
  while (at < end)
    if (sendfile(to, from, &at, (size_t)(end - at)) <= 0) return -1;
  return end < 0 ? -1 : 0;
}

/* The rules that ranges and conditions do not decide. NULL when there is no room for it. */
static scmp_filter_ctx filter_of_rest(const struct compilation *c) {
  scmp_filter_ctx rest = new_filter(c);
  if (rest == NULL) return NULL;
  int error = c->has_foreign ? seccomp_attr_set(rest, SCMP_FLTATR_ACT_BADARCH, c->foreign) : 0;
  for (size_t i = 0; i < c->count && error == 0; i++) {
    const struct rule *rule = &c->rules[i];
    if (rule->matched == 0 && ranges_leave(&c->ranges, rule->number)) error = seccomp_rule_add_exact_array(rest, rule->action, rule->call, 0, NULL);
  }
  return error == 0 ? rest : (seccomp_release(rest), NULL);
}

static int write_parts(struct compilation *c, scmp_filter_ctx filter, int draft) {
  return ahead_write(&c->ahead, c->arch, draft) < 0 ? -errno : seccomp_export_bpf(filter, draft);
}

static int write_filter(struct compilation *c, struct sock_filter *code, int draft) {
  size_t length = ranges_write(&c->ranges, c->ahead.highest, code, RANGES_ROOM);
  scmp_filter_ctx rest = length > 0 ? filter_of_rest(c) : NULL;
  if (rest == NULL) length = 0;
  c->ahead.code = code;
  c->ahead.length = length + conditions_write(c->rules, c->count, c->ranges.fallback, code + length);
  if (rest == NULL) {
    /* A tree of calls keeps loading and running the filter short. Without rules libseccomp would build an empty tree and forget the default. */
    if (c->count > c->conditional && seccomp_attr_set(c->filter, SCMP_FLTATR_CTL_OPTIMIZE, 2) < 0) return -EINVAL;
    return write_parts(c, c->filter, draft);
  }
  int error = write_parts(c, rest, draft);
  seccomp_release(rest);
  return error;
}

/* Held back until it is whole, so that a failure leaves nothing on stdout. */
static int write_program(struct compilation *c) {
  int draft = memfd_create("filter", MFD_CLOEXEC);
  if (draft < 0) return refuse(c, strerror(errno), "draft of the filter");
  struct sock_filter *code = calloc(RANGES_ROOM + c->count * RULE_MOST_INSTRUCTIONS, sizeof *code);
  int error = code == NULL ? -ENOMEM : write_filter(c, code, draft);
  free(code);
  if (error == 0 && copy_all(draft, STDOUT_FILENO) < 0) error = -errno;
  close(draft);
  return error < 0 ? refuse(c, strerror(-error), "standard output") : 0;
}

int main(int argc, char **argv) {
  struct compilation c = {0};
  c.arch = seccomp_arch_native();
  if (argc == 3 && strcmp(argv[1], "--arch") == 0 && strcmp(argv[2], "x86_64") == 0) c.arch = SCMP_ARCH_X86_64;
  else if (argc == 3 && strcmp(argv[1], "--arch") == 0 && strcmp(argv[2], "aarch64") == 0) c.arch = SCMP_ARCH_AARCH64;
  else if (argc != 1) return fputs("usage: seccomp-compile [--arch x86_64|aarch64] < rules > program\n", stderr), 2;
  /* A compiler asks nothing of the kernel it happens to run on: killing a process and logging are in every one that runs our programs. */
  int status = seccomp_api_set(3) < 0 ? refuse(&c, "libseccomp is too old", "api level 3") : take_lines(&c);
  if (status == 0) status = write_program(&c);
  seccomp_release(c.filter);
  free(c.rules);
  return status == 0 ? 0 : 1;
}
