#include "seccomp-conditions.h"

#include <linux/seccomp.h>

/* In a draft: on to the next rule, wherever it will begin. No jump within a rule is as long. */
enum { NEXT_RULE = 255 };

struct draft {
  struct sock_filter *code;
  size_t length;
};

static int has_condition(const struct rule *rule, const struct scmp_arg_cmp *wanted) {
  for (int i = 0; i < rule->matched; i++) {
    const struct scmp_arg_cmp *own = &rule->conditions[i];
    if (own->arg == wanted->arg) return own->op == wanted->op && own->datum_a == wanted->datum_a && own->datum_b == wanted->datum_b;
  }
  return 0;
}

int conditions_are_same(const struct rule *one, const struct rule *other) {
  if (one->number != other->number || one->matched != other->matched) return 0;
  for (int i = 0; i < one->matched; i++)
    if (!has_condition(other, &one->conditions[i])) return 0;
  return 1;
}

static void put(struct draft *draft, struct sock_filter instruction) {
  draft->code[draft->length++] = instruction;
}

static void put_load(struct draft *draft, unsigned arg, int is_upper) {
  uint32_t offset = (uint32_t)(offsetof(struct seccomp_data, args) + arg * sizeof(uint64_t)) + (is_upper ? 4 : 0);
  put(draft, (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offset));
}

static void put_jump(struct draft *draft, uint16_t test, uint32_t value, unsigned char met, unsigned char unmet) {
  put(draft, (struct sock_filter)BPF_JUMP(BPF_JMP | test | BPF_K, value, met, unmet));
}

static void put_masked_half(struct draft *draft, const struct scmp_arg_cmp *condition, int is_upper) {
  uint32_t mask = (uint32_t)(condition->datum_a >> (is_upper ? 32 : 0));
  uint32_t value = (uint32_t)(condition->datum_b >> (is_upper ? 32 : 0)) & mask;
  if (mask == 0) return;
  put_load(draft, condition->arg, is_upper);
  if (mask != UINT32_MAX) put(draft, (struct sock_filter)BPF_STMT(BPF_ALU | BPF_AND | BPF_K, mask));
  put_jump(draft, BPF_JEQ, value, 0, NEXT_RULE);
}

/* The upper halves decide unless they are equal. */
static void put_order(struct draft *draft, const struct scmp_arg_cmp *condition) {
  uint32_t upper = (uint32_t)(condition->datum_a >> 32), lower = (uint32_t)condition->datum_a;
  int is_below = condition->op == SCMP_CMP_LT || condition->op == SCMP_CMP_LE;
  uint16_t test = condition->op == SCMP_CMP_LT || condition->op == SCMP_CMP_GE ? BPF_JGE : BPF_JGT;
  put_load(draft, condition->arg, 1);
  put_jump(draft, BPF_JGT, upper, is_below ? NEXT_RULE : 3, 0);
  put_jump(draft, BPF_JEQ, upper, 0, is_below ? 2 : NEXT_RULE);
  put_load(draft, condition->arg, 0);
  put_jump(draft, test, lower, is_below ? NEXT_RULE : 0, is_below ? 0 : NEXT_RULE);
}

static void put_difference(struct draft *draft, const struct scmp_arg_cmp *condition) {
  put_load(draft, condition->arg, 1);
  put_jump(draft, BPF_JEQ, (uint32_t)(condition->datum_a >> 32), 0, 2);
  put_load(draft, condition->arg, 0);
  put_jump(draft, BPF_JEQ, (uint32_t)condition->datum_a, NEXT_RULE, 0);
}

static void put_condition(struct draft *draft, const struct scmp_arg_cmp *condition) {
  struct scmp_arg_cmp whole = {.arg = condition->arg, .datum_a = UINT64_MAX, .datum_b = condition->datum_a};
  const struct scmp_arg_cmp *masked = condition->op == SCMP_CMP_EQ ? &whole : condition;
  if (condition->op == SCMP_CMP_NE) return put_difference(draft, condition);
  if (condition->op != SCMP_CMP_EQ && condition->op != SCMP_CMP_MASKED_EQ) return put_order(draft, condition);
  put_masked_half(draft, masked, 1);
  put_masked_half(draft, masked, 0);
}

static void put_rule(struct draft *draft, const struct rule *rule) {
  size_t first = draft->length;
  for (int i = 0; i < rule->matched; i++) put_condition(draft, &rule->conditions[i]);
  put(draft, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, rule->action));
  for (size_t i = first; i < draft->length; i++) {
    if (BPF_CLASS(draft->code[i].code) != BPF_JMP) continue;
    unsigned char reach = (unsigned char)(draft->length - i - 1);
    if (draft->code[i].jt == NEXT_RULE) draft->code[i].jt = reach;
    if (draft->code[i].jf == NEXT_RULE) draft->code[i].jf = reach;
  }
}

/* As the kernel orders the answers of several filters. */
static void put_call(struct draft *draft, const struct rule *rules, size_t count, uint32_t number) {
  static const uint32_t sternest_first[] = {
      SCMP_ACT_KILL_PROCESS, SCMP_ACT_KILL_THREAD, SCMP_ACT_TRAP, SECCOMP_RET_ERRNO, SCMP_ACT_LOG, SCMP_ACT_ALLOW,
  };
  for (size_t level = 0; level < sizeof sternest_first / sizeof *sternest_first; level++)
    for (size_t i = 0; i < count; i++)
      if (rules[i].number == number && (rules[i].action & SECCOMP_RET_ACTION_FULL) == sternest_first[level]) put_rule(draft, &rules[i]);
}

/* Whether a call is decided by its conditions, and this is its first rule: it is written once. */
static int begins_call(const struct rule *rules, size_t count, size_t at) {
  for (size_t i = 0; i < count; i++)
    if (rules[i].number == rules[at].number && (i < at || rules[i].matched == 0)) return 0;
  return 1;
}

size_t conditions_write(const struct rule *rules, size_t count, uint32_t fallback, struct sock_filter *code) {
  struct draft draft = {.code = code};
  for (size_t i = 0; i < count; i++) {
    if (!begins_call(rules, count, i)) continue;
    put_jump(&draft, BPF_JEQ, rules[i].number, 1, 0);
    size_t past = draft.length;
    put(&draft, (struct sock_filter)BPF_STMT(BPF_JMP | BPF_JA, 0));
    put_call(&draft, rules, count, rules[i].number);
    put(&draft, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, fallback));
    code[past].k = (uint32_t)(draft.length - past - 1);
  }
  return draft.length;
}
