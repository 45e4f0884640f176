/*
 * launcher --tell
 *
 * Reads for the owner what the kernel says of a cell whose machine the owner is not on: started by the container engine in the container, beside the cell and outside
 * of it, with the container's id, which made the cell's user namespace and may look at all that is in it. It decides nothing, and ends with its stdin.
 *
 *   r PATH   the content of a file          l PATH   where a link leads
 *   d PATH   the names in a folder          s PATH   `f` or `d` for a file or a folder, and what tells it from all others
 *
 * Each is a line, and each is answered in order: by `+LENGTH`, a newline and as many bytes, or by `-ERRNO` and a newline.
 */
#include "launcher.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MOST_TOLD = 1 << 20 };

struct answer {
    size_t length;
    char bytes[MOST_TOLD];
};

static bool put(struct answer *answer, const char *text)
{
    size_t length = strlen(text);
    if (length > sizeof answer->bytes - answer->length) {
        errno = EFBIG;
        return false;
    }
    memcpy(answer->bytes + answer->length, text, length);
    answer->length += length;
    return true;
}

static bool tell_file(struct answer *answer, const char *path)
{
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return false;
    ssize_t got;
    while ((got = read(file, answer->bytes + answer->length, sizeof answer->bytes - answer->length)) > 0)
        answer->length += (size_t)got;
    const int why = got < 0 ? errno : EFBIG;
    close(file);
    errno = why;
    return got == 0 && answer->length < sizeof answer->bytes;
}

static bool tell_link(struct answer *answer, const char *path)
{
    ssize_t got = readlink(path, answer->bytes, sizeof answer->bytes);
    answer->length = got < 0 ? 0 : (size_t)got;
    return got >= 0;
}

static bool tell_folder(struct answer *answer, const char *path)
{
    DIR *folder = opendir(path);
    if (folder == NULL)
        return false;
    bool told = true;
    for (struct dirent *entry; told && (entry = readdir(folder)) != NULL;)
        told = strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 || (put(answer, entry->d_name) && put(answer, "\n"));
    closedir(folder);
    return told;
}

static bool tell_identity(struct answer *answer, const char *path)
{
    struct stat status;
    char text[64];
    if (stat(path, &status) != 0)
        return false;
    snprintf(text, sizeof text, "%c%llu:%llu", S_ISDIR(status.st_mode) ? 'd' : 'f', (unsigned long long)status.st_dev, (unsigned long long)status.st_ino);
    return put(answer, text);
}

/* What is the kernel's own, and nothing else. */
static bool is_told_of(const char *path)
{
    return (strncmp(path, "/proc/", strlen("/proc/")) == 0 || strncmp(path, "/sys/fs/cgroup/", strlen("/sys/fs/cgroup/")) == 0) && strstr(path, "/..") == NULL;
}

static bool tell(struct answer *answer, const char *line)
{
    static const struct {
        char kind;
        bool (*tell)(struct answer *, const char *);
    } kinds[] = { { 'r', tell_file }, { 'l', tell_link }, { 'd', tell_folder }, { 's', tell_identity } };

    answer->length = 0;
    errno = EINVAL;
    if (line[0] == '\0' || line[1] != ' ' || !is_told_of(line + 2))
        return false;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (kinds[i].kind == line[0])
            return kinds[i].tell(answer, line + 2);
    return false;
}

_Noreturn void tell_owner(void)
{
    static struct answer answer;
    char line[PATH_MAX];

    while (fgets(line, sizeof line, stdin) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        if (tell(&answer, line)) {
            printf("+%zu\n", answer.length);
            fwrite(answer.bytes, 1, answer.length, stdout);
        } else {
            printf("-%d\n", errno);
        }
        if (fflush(stdout) != 0)
            break;
    }
    _exit(0);
}
