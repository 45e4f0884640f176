#ifndef GLOVEBOX_SECCOMP_CONDITIONS_H
#define GLOVEBOX_SECCOMP_CONDITIONS_H

#include <linux/filter.h>
#include <seccomp.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Rules that depend on arguments. libseccomp merges those of one call into a tree, and where they begin alike or overlap the tree says other than the rules,
 * or is never finished. Here each rule is tried after the other, the sternest first.
 */
enum {
  RULE_MOST_CONDITIONS = 6,
  RULE_MOST_INSTRUCTIONS = RULE_MOST_CONDITIONS * 6 + 4, /* a rule and its share of what finds its call */
  RULES_MOST_CONDITIONAL = 4096                         /* the kernel's bound on instructions: none of these needs fewer than one */
};

struct rule {
  uint32_t action, number; /* as the architecture itself numbers the call */
  int call, matched;
  struct scmp_arg_cmp conditions[RULE_MOST_CONDITIONS];
};

/* Whether both hold for the same calls, by the words of their conditions in any order. */
int conditions_are_same(const struct rule *one, const struct rule *other);
/*
 * Instructions that decide every call with conditions, the number being loaded; all other calls go on behind them, and so does a call that also has a rule
 * without. Takes room for RULE_MOST_INSTRUCTIONS a rule; answers how many they are.
 */
size_t conditions_write(const struct rule *rules, size_t count, uint32_t fallback, struct sock_filter *code);

#endif
