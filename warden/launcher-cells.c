#include "launcher-cells.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "launcher.h"
#include "newest-filter.h"

enum { MOST_WORDS = 4096 };

void *allocate(size_t bytes)
{
    void *memory = calloc(1, bytes);
    if (memory == NULL)
        fail("allocate", "cell");
    return memory;
}

struct cell **find_cell(struct cell **cells, uint32_t id)
{
    struct cell **at = cells;
    while (*at != NULL && (*at)->id != id)
        at = &(*at)->next;
    return at;
}

struct cell *cell_of(struct cell **cells, uint32_t id)
{
    struct cell **found = find_cell(cells, id);
    if (*found == NULL) {
        *found = allocate(sizeof **found);
        (*found)->id = id;
        for (size_t i = 0; i < MOST_STREAMS; i++)
            (*found)->stream[i] = -1;
    }
    return *found;
}

static void close_streams(struct cell *cell)
{
    for (size_t i = 0; i < MOST_STREAMS; i++) {
        if (cell->stream[i] >= 0)
            close(cell->stream[i]);
        cell->stream[i] = -1;
    }
    free(cell->words);
    cell->words = NULL;
}

void forget_cell(struct cell **at)
{
    struct cell *cell = *at;
    if (cell == NULL)
        return;
    close_streams(cell);
    *at = cell->next;
    free(cell);
}

void tell(uint32_t id, enum event event, int value)
{
    uint32_t words[3] = { id, event, (uint32_t)value };
    /* An owner that hears nothing any more is gone. */
    if (!write_all(STDOUT_FILENO, words, sizeof words))
        _exit(0);
}

/* Out of the way first, because the numbers that they are to have are taken. */
static void place_streams(struct cell *cell)
{
    int moved[MOST_STREAMS];
    for (size_t i = 0; i < cell->streams; i++)
        moved[i] = move_own(cell->stream[i]);
    for (size_t i = 0; i < cell->streams; i++)
        place_descriptor(moved[i], (int)i);
}

/* Whoever looks at the processes of the machine is to tell a cell from the server; that it is one stands at the place of the server's own arguments. */
static void rename_self(char **values)
{
    static const char name[] = "--cell";
    char *first = values[-1];
    char *end = values[1] + strlen(values[1]);
    memset(first, 0, (size_t)(end - first));
    memcpy(first, name, sizeof name);
}

static _Noreturn void become_launcher(struct cell *cell, int copy)
{
    char *argv[MOST_WORDS + 1];
    int argc = 0;
    sigset_t none;

    place_streams(cell);
    sigemptyset(&none);
    if (sigprocmask(SIG_SETMASK, &none, NULL) != 0)
        fail("unblock", "signals");
    for (uint32_t at = 0; at < cell->length; at += (uint32_t)strlen(cell->words + at) + 1) {
        errno = E2BIG;
        if (argc == MOST_WORDS)
            fail("launch with", "so many arguments");
        argv[argc++] = cell->words + at;
    }
    argv[argc] = NULL;
    launch(argc, argv, copy);
}

static const char *next_word(const struct cell *cell, const char *word)
{
    const char *next = word + strlen(word) + 1;
    return next < cell->words + cell->length ? next : NULL;
}

/* Whether it is told rightly is for whoever is launched to say. */
static int copy_for(const struct cell *cell, struct program_copy *copy)
{
    const char *path = NULL;
    for (const char *word = cell->words; word != NULL && path == NULL && strcmp(word, "--") != 0; word = next_word(cell, word))
        if (strcmp(word, "--copied") == 0)
            path = next_word(cell, word);
    return path == NULL ? -1 : copy_program(copy, path);
}

void launch_when_complete(struct cell **cells, struct cell *cell, struct service *service)
{
    if (cell->streams == 0 || cell->pid != 0)
        return;
    for (size_t i = 0; i < cell->streams; i++)
        if (cell->stream[i] < 0)
            return;
    int copy = copy_for(cell, &service->copy);
    pid_t pid = fork();
    if (pid == 0) {
        rename_self(service->values);
        become_launcher(cell, copy);
    }
    if (pid < 0) {
        tell(cell->id, REFUSED, errno);
        forget_cell(find_cell(cells, cell->id));
        return;
    }
    cell->pid = pid;
    close_streams(cell);
    tell(cell->id, LAUNCHED, pid);
}
