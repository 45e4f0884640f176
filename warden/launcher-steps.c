/* The words of bwrap that cells with ids of their own are built by, and no others. */
#include "launcher.h"

#include <errno.h>
#include <linux/capability.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launcher-steps.h"
#include "mount-calls.h"

enum { DEFAULT_FILE_MODE = 0666 };

struct word {
    const char *name;
    int values;
    void (*take)(struct steps *steps, char **values);
};

static _Noreturn void misunderstand(const char *word)
{
    errno = EINVAL;
    fail("build with", word);
}

static struct step *next_step(struct steps *steps, enum step_kind kind, const char *target)
{
    errno = E2BIG;
    if (steps->count == MOST_STEPS)
        fail("build with", "so many steps");
    if (target[0] != '/')
        misunderstand(target);
    struct step *step = &steps->list[steps->count++];
    step->kind = kind;
    step->target = target;
    return step;
}

static void add_bind(struct steps *steps, char **values, uint64_t flags)
{
    struct step *step = next_step(steps, STEP_BIND, values[1]);
    step->source = values[0];
    step->flags = flags | ATTR_NOSUID;
}

static void take_bind(struct steps *steps, char **values)
{
    add_bind(steps, values, ATTR_NODEV);
}

static void take_readonly_bind(struct steps *steps, char **values)
{
    add_bind(steps, values, ATTR_NODEV | ATTR_RDONLY);
}

static void take_device_bind(struct steps *steps, char **values)
{
    add_bind(steps, values, 0);
}

static void take_symlink(struct steps *steps, char **values)
{
    next_step(steps, STEP_SYMLINK, values[1])->source = values[0];
}

static void take_proc(struct steps *steps, char **values)
{
    next_step(steps, STEP_PROC, values[0]);
}

static void take_folder(struct steps *steps, char **values)
{
    next_step(steps, STEP_FOLDER, values[0]);
}

/* MODE, then the file that it is the mode of. */
static void take_file(struct steps *steps, char **values)
{
    if (strcmp(values[1], "--file") != 0)
        misunderstand(values[1]);
    struct step *step = next_step(steps, STEP_FILE, values[3]);
    char *end;
    step->mode = (mode_t)strtoul(values[0], &end, 8);
    if (*end != '\0' || step->mode > DEFAULT_FILE_MODE)
        misunderstand(values[0]);
    step->fd = atoi(values[2]);
}

static void take_hostname(struct steps *steps, char **values)
{
    steps->hostname = values[0];
}

static void take_variable(struct steps *steps, char **values)
{
    errno = E2BIG;
    if (steps->variables == MOST_VARIABLES || (size_t)snprintf(steps->variable[steps->variables], MOST_VARIABLE_BYTES, "%s=%s", values[0], values[1]) >= MOST_VARIABLE_BYTES)
        fail("set", values[0]);
    steps->variables++;
}

static void take_dropped(struct steps *steps, char **values)
{
    if (strcmp(values[0], "ALL") != 0 || steps->capabilities != 0)
        misunderstand("--cap-drop");
}

static void take_capability(struct steps *steps, char **values)
{
    static const struct {
        const char *name;
        unsigned number;
    } known[] = {
        { "CAP_CHOWN", CAP_CHOWN },     { "CAP_DAC_OVERRIDE", CAP_DAC_OVERRIDE },         { "CAP_FOWNER", CAP_FOWNER },       { "CAP_FSETID", CAP_FSETID },
        { "CAP_KILL", CAP_KILL },       { "CAP_SETGID", CAP_SETGID },                     { "CAP_SETUID", CAP_SETUID },       { "CAP_SETPCAP", CAP_SETPCAP },
        { "CAP_NET_ADMIN", CAP_NET_ADMIN }, { "CAP_NET_BIND_SERVICE", CAP_NET_BIND_SERVICE }, { "CAP_SYS_ADMIN", CAP_SYS_ADMIN },
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (strcmp(values[0], known[i].name) == 0) {
            steps->capabilities |= 1ULL << known[i].number;
            return;
        }
    }
    misunderstand(values[0]);
}

/* What the launcher does in any case: every namespace is the cell's own, its first process is the program, and it ends with its monitor. */
static void take_granted(struct steps *steps, char **values)
{
    (void)steps;
    (void)values;
}

static const struct word WORDS[] = {
    { "--unshare-all", 0, take_granted },
    { "--unshare-user", 0, take_granted },
    { "--as-pid-1", 0, take_granted },
    { "--die-with-parent", 0, take_granted },
    { "--clearenv", 0, take_granted },
    { "--info-fd", 1, take_granted },
    { "--userns-block-fd", 1, take_granted },
    { "--hostname", 1, take_hostname },
    { "--setenv", 2, take_variable },
    { "--cap-drop", 1, take_dropped },
    { "--cap-add", 1, take_capability },
    { "--bind", 2, take_bind },
    { "--ro-bind", 2, take_readonly_bind },
    { "--dev-bind", 2, take_device_bind },
    { "--symlink", 2, take_symlink },
    { "--proc", 1, take_proc },
    { "--dir", 1, take_folder },
    { "--perms", 4, take_file },
};

static const struct word *find_word(const char *name)
{
    for (size_t i = 0; i < sizeof WORDS / sizeof *WORDS; i++)
        if (strcmp(WORDS[i].name, name) == 0)
            return &WORDS[i];
    misunderstand(name);
}

static void check_values(const struct word *word, char **values)
{
    for (int i = 0; i < word->values; i++)
        if (values[i] == NULL)
            misunderstand(word->name);
}

void parse_steps(struct steps *steps, char **words)
{
    memset(steps, 0, offsetof(struct steps, list));
    while (*words != NULL && strcmp(*words, "--") != 0) {
        const struct word *word = find_word(*words);
        check_values(word, words + 1);
        word->take(steps, words + 1);
        words += 1 + word->values;
    }
    if (*words == NULL || words[1] == NULL || steps->hostname == NULL)
        misunderstand("too few words");
    steps->program = words + 1;
}
