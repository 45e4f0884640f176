/* The words of bwrap that cells with ids of their own are built by. Whatever else it is told, bwrap itself does. */
#include "launcher.h"

#include <linux/capability.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launcher-steps.h"
#include "mount-calls.h"

enum { MOST_FILE_MODE = 0666 };

struct word {
    const char *name;
    int values;
    /* Whether it is understood. */
    bool (*take)(struct steps *steps, char **values);
};

static bool add_step(struct steps *steps, struct step step)
{
    if (steps->count == MOST_STEPS || step.target[0] != '/')
        return false;
    steps->list[steps->count++] = step;
    return true;
}

static bool add_bind(struct steps *steps, char **values, uint64_t flags)
{
    return add_step(steps, (struct step){ .kind = STEP_BIND, .source = values[0], .target = values[1], .flags = flags | ATTR_NOSUID });
}

static bool take_bind(struct steps *steps, char **values)
{
    return add_bind(steps, values, ATTR_NODEV);
}

static bool take_readonly_bind(struct steps *steps, char **values)
{
    return add_bind(steps, values, ATTR_NODEV | ATTR_RDONLY);
}

static bool take_device_bind(struct steps *steps, char **values)
{
    return add_bind(steps, values, 0);
}

static bool take_symlink(struct steps *steps, char **values)
{
    return add_step(steps, (struct step){ .kind = STEP_SYMLINK, .source = values[0], .target = values[1] });
}

static bool take_proc(struct steps *steps, char **values)
{
    return add_step(steps, (struct step){ .kind = STEP_PROC, .target = values[0] });
}

static bool take_tmpfs(struct steps *steps, char **values)
{
    return add_step(steps, (struct step){ .kind = STEP_TMPFS, .target = values[0] });
}

static bool take_folder(struct steps *steps, char **values)
{
    return add_step(steps, (struct step){ .kind = STEP_FOLDER, .target = values[0] });
}

/* MODE, then the file that it is the mode of. */
static bool take_file(struct steps *steps, char **values)
{
    char *end;
    unsigned long mode = strtoul(values[0], &end, 8);
    if (*end != '\0' || mode > MOST_FILE_MODE || strcmp(values[1], "--file") != 0)
        return false;
    return add_step(steps, (struct step){ .kind = STEP_FILE, .mode = (mode_t)mode, .fd = atoi(values[2]), .target = values[3] });
}

static bool take_hostname(struct steps *steps, char **values)
{
    steps->hostname = values[0];
    return true;
}

static bool take_variable(struct steps *steps, char **values)
{
    if (steps->variables == MOST_VARIABLES)
        return false;
    int length = snprintf(steps->variable[steps->variables++], MOST_VARIABLE_BYTES, "%s=%s", values[0], values[1]);
    return length < MOST_VARIABLE_BYTES;
}

/* All of them, before any is added. */
static bool take_dropped(struct steps *steps, char **values)
{
    return strcmp(values[0], "ALL") == 0 && steps->capabilities == 0;
}

static bool take_capability(struct steps *steps, char **values)
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
            return true;
        }
    }
    return false;
}

static bool take_unshared(struct steps *steps, char **values)
{
    (void)values;
    steps->unshares = true;
    return true;
}

/* What the launcher does in any case: every namespace is the cell's own, its first process is the program, and it ends with its monitor. */
static bool take_granted(struct steps *steps, char **values)
{
    (void)steps;
    (void)values;
    return true;
}

static const struct word WORDS[] = {
    { "--unshare-all", 0, take_unshared },
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
    { "--tmpfs", 1, take_tmpfs },
    { "--dir", 1, take_folder },
    { "--perms", 4, take_file },
};

static bool has_values(const struct word *word, char **values)
{
    for (int i = 0; i < word->values; i++)
        if (values[i] == NULL)
            return false;
    return true;
}

static const struct word *find_word(const char *name)
{
    for (size_t i = 0; i < sizeof WORDS / sizeof *WORDS; i++)
        if (strcmp(WORDS[i].name, name) == 0)
            return &WORDS[i];
    return NULL;
}

bool parse_steps(struct steps *steps, char **words)
{
    memset(steps, 0, offsetof(struct steps, list));
    while (*words != NULL && strcmp(*words, "--") != 0) {
        const struct word *word = find_word(*words);
        if (word == NULL || !has_values(word, words + 1) || !word->take(steps, words + 1))
            return false;
        words += 1 + word->values;
    }
    if (*words == NULL || words[1] == NULL)
        return false;
    steps->program = words + 1;
    return true;
}
