# Given to the interpreter as `-c`: takes the kernel's source from descriptor 3 and runs it from memory.
# Nothing here is used through a global name later: the module __main__ becomes the code's own, and these names go.
def take_load(os):
    """The payload of the first frame."""

    def read(length):
        data = b""
        while len(data) < length:
            piece = os.read(3, length - len(data))
            if not piece:
                os._exit(0)
            data += piece
        return data

    head = b""
    while not head.endswith(b"\n"):
        head += read(1)
    kind, _, length = head.split()
    if kind != b"load":
        os._exit(64)
    return read(int(length))


def make_memory(modules, builtins):
    from _frozen_importlib import ModuleSpec

    class Memory:
        """Finds and loads the kernel's modules; one that was loaded once is never loaded again, whatever becomes of sys.modules."""

        sources = dict(modules, glovebox_kernel="")
        loaded = {}
        modules_before = None

        def find_spec(self, name, path=None, target=None):
            if name not in self.sources:
                return None
            spec = ModuleSpec(name, self, origin=name.replace(".", "/") + ".py", is_package=name == "glovebox_kernel")
            spec.has_location = True
            return spec

        def create_module(self, spec):
            return self.loaded.get(spec.name)

        def exec_module(self, module):
            name = module.__name__
            if name in self.loaded:
                return
            self.loaded[name] = module
            # Its own copy: code that deletes or shadows builtins does so for itself.
            module.__dict__["__builtins__"] = builtins
            run(compile_source(self.sources[name], module.__spec__.origin, "exec", dont_inherit=True), module.__dict__)

        def get_source(self, name):
            return self.sources[name]

    run, compile_source = exec, compile
    return Memory()


def boot():
    import sys

    # The kernel's own imports never come from the folder that it happens to begin in.
    own_folder = sys.path[:1] == [""]
    if own_folder:
        del sys.path[0]
    modules_before = set(sys.modules)
    import json
    import os

    load = json.loads(take_load(os))
    memory = make_memory(load["modules"], dict(vars(sys.modules["builtins"])))
    memory.modules_before = modules_before
    sys.meta_path.insert(0, memory)
    __import__(load["main"])
    sys.modules[load["main"]].run(memory, own_folder)


boot()
