/*
 * The zygote's library as a module of Python. Only what every Python 3 has had in its stable ABI is used, and declared here, so that one file serves all of them: to load it
 * takes none of the interpreter's own modules for foreign code, which each cell would hold in memory.
 */
#include <dlfcn.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "brood.h"
#include "zygote.h"
#include "zygote-memory.h"

/* Undefined until an interpreter loads this. */
#define PYTHONS extern __attribute__((weak))

struct object {
  intptr_t references;
  void *type;
};

struct method {
  const char *name;
  struct object *(*call)(struct object *self, struct object *arguments);
  int flags;
  const char *doc;
};

struct module {
  struct object head;
  struct object *(*init)(void);
  intptr_t index;
  struct object *copy;
  const char *name;
  const char *doc;
  intptr_t size;
  const struct method *methods;
  void *slots, *traverse, *clear, *free;
};

PYTHONS struct object *PyModule_Create2(struct module *module, int version);
PYTHONS int PyArg_ParseTuple(struct object *arguments, const char *format, ...);
PYTHONS struct object *Py_BuildValue(const char *format, ...);
PYTHONS struct object *PyList_New(intptr_t length);
PYTHONS int PyList_Append(struct object *list, struct object *item);
PYTHONS struct object *PyBytes_FromString(const char *text);
PYTHONS struct object *Py_CompileString(const char *source, const char *file, int start);
PYTHONS void Py_DecRef(struct object *object);
PYTHONS void PyObject_GetArenaAllocator(struct arenas *arenas);
PYTHONS void PyObject_SetArenaAllocator(struct arenas *arenas);
PYTHONS void PyOS_BeforeFork(void);
PYTHONS void PyOS_AfterFork_Child(void);

enum { WITH_ARGUMENTS = 1, API_VERSION = 1013, WHOLE_FILE = 257, SIGRTMIN_LOWEST = 32 };

static struct object *texts(char *const *entries)
{
  struct object *list = PyList_New(0);
  for (; list && *entries; entries++) {
    struct object *text = PyBytes_FromString(*entries);
    if (!text || PyList_Append(list, text) < 0) return NULL;
    Py_DecRef(text);
  }
  return list;
}

/* Whoever hears it may ask for a fork at once. */
static struct object *greet(struct object *self, struct object *arguments)
{
  int socket;
  (void)self;
  if (!PyArg_ParseTuple(arguments, "i", &socket)) return NULL;
  memory_tidy();
  brood_greet(socket);
  return Py_BuildValue("");
}

/* What is imported ahead is in memory that forks share by large pieces: from 1 on, and until 0. Whatever programs add is where the interpreter usually has it. */
static struct object *gather(struct object *self, struct object *arguments)
{
  int begins;
  struct arenas arenas;
  (void)self;
  if (!PyArg_ParseTuple(arguments, "i", &begins)) return NULL;
  if (PyObject_GetArenaAllocator && PyObject_SetArenaAllocator) {
    PyObject_GetArenaAllocator(&arenas);
    arenas = begins ? memory_gather(&arenas) : memory_usual(&arenas);
    PyObject_SetArenaAllocator(&arenas);
  }
  return Py_BuildValue("");
}

/*
 * OpenSSL frees all that it has when a process exits, for which each fork would first copy it. It can only be told not to before it is used, and there is no need to:
 * the memory goes with the process.
 */
static struct object *spare(struct object *self, struct object *arguments)
{
  const char *module;
  const uint64_t without_exit = 0x80000; /* OPENSSL_INIT_NO_ATEXIT */
  (void)self;
  if (!PyArg_ParseTuple(arguments, "y", &module)) return NULL;
  void *library = dlopen(module, RTLD_NOW | RTLD_LOCAL);
  int (*begin)(uint64_t options, const void *settings) = NULL;
  if (library) *(void **)&begin = dlsym(library, "OPENSSL_init_crypto");
  if (begin) begin(without_exit, NULL);
  return Py_BuildValue("");
}

/* The dispositions that the interpreter made and knows of: its programs begin with all at their defaults. */
struct dispositions {
  struct sigaction of[SIGRTMIN_LOWEST];
};

static void take_down(struct dispositions *known)
{
  for (int number = 1; number < SIGRTMIN_LOWEST; number++)
    if (sigaction(number, NULL, &known->of[number]) < 0) known->of[number].sa_handler = SIG_DFL;
}

static void bring_back(const struct dispositions *known)
{
  for (int number = 1; number < SIGRTMIN_LOWEST; number++)
    if (known->of[number].sa_handler != SIG_DFL) sigaction(number, &known->of[number], NULL);
}

static bool is_environment(char *const *entries)
{
  char **known = environ;
  while (*entries && known && *known && strcmp(*entries, *known) == 0) entries++, known++;
  return !*entries && (!known || !*known);
}

/* Returns in the forks: their arguments, and their environment where it is another. */
static struct object *serve(struct object *self, struct object *arguments)
{
  int socket;
  char **argv, **envp;
  struct dispositions known = { 0 };
  (void)self;
  if (!PyArg_ParseTuple(arguments, "i", &socket)) return NULL;
  PyOS_BeforeFork();
  take_down(&known);
  if (zygote_serve(socket, &argv, &envp) < 0) _exit(1);
  bring_back(&known);
  PyOS_AfterFork_Child();
  return Py_BuildValue("NN", texts(argv), is_environment(envp) ? Py_BuildValue("") : texts(envp));
}

/* As an interpreter compiles what it reads, by the encoding that the source itself states. */
static struct object *compile(struct object *self, struct object *arguments)
{
  const char *source, *file;
  (void)self;
  if (!PyArg_ParseTuple(arguments, "yy", &source, &file)) return NULL;
  return Py_CompileString(source, file, WHOLE_FILE);
}

static struct object *leave(struct object *self, struct object *arguments)
{
  int status;
  (void)self;
  if (!PyArg_ParseTuple(arguments, "i", &status)) return NULL;
  zygote_exit(status);
}

__attribute__((visibility("default"))) struct object *PyInit__glovebox(void)
{
  static const struct method METHODS[] = { { "greet", greet, WITH_ARGUMENTS, NULL }, { "gather", gather, WITH_ARGUMENTS, NULL }, { "spare", spare, WITH_ARGUMENTS, NULL }, { "serve", serve, WITH_ARGUMENTS, NULL }, { "compile", compile, WITH_ARGUMENTS, NULL }, { "leave", leave, WITH_ARGUMENTS, NULL }, { 0 } };
  /* The interpreter writes into it. */
  struct module *module = calloc(1, sizeof *module);
  if (!module) return NULL;
  *module = (struct module){ .head.references = 1, .name = "_glovebox", .size = -1, .methods = METHODS };
  return PyModule_Create2(module, API_VERSION);
}
