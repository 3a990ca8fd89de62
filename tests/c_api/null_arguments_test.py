"""Every function of the C interface, called with NULL and zeros, returns a status and does not crash.

usage: null_arguments_test.py HEADER LIBRARY

The functions are those of the header, so that no function is left out. Each is called in a process
of its own.
"""
import ctypes
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "abi"))
import check_abi

SKIPPED = 77
TYPES = {"int32_t": ctypes.c_int32, "uint32_t": ctypes.c_uint32, "uint8_t": ctypes.c_uint8,
         "int64_t": ctypes.c_int64, "uint64_t": ctypes.c_uint64, "size_t": ctypes.c_size_t,
         "float": ctypes.c_float, "double": ctypes.c_double}
# These return NULL if there is no such element.
MAY_BE_NULL = {"hmmjit_stream_native", "hmmjit_event_native", "hmmjit_kernel_native", "hmmjit_results_get", "hmmjit_rounds_get", "hmmjit_round_result"}
# These take no pointers, or accept NULL: a search that does not exist has no further round.
NOTHING_TO_REFUSE = {"hmmjit_status_name", "hmmjit_version", "hmmjit_version_number", "hmmjit_iteration_done"}


def parameters(text):
    """The parts of a parameter list, those of function pointers kept together."""
    parts, depth, current = [], 0, ""
    for character in text:
        depth += {"(": 1, ")": -1}.get(character, 0)
        if character == "," and depth == 0:
            parts.append(current)
            current = ""
        else:
            current += character
    parts.append(current)
    return [part.strip() for part in parts if part.strip() not in ("", "void")]


def functions(header):
    for declaration in check_abi.declarations(header):
        found = re.match(r"(.*?)\b(hmmjit_\w+)\((.*)\);$", declaration)
        if found and "typedef" not in declaration:
            yield found.group(1).strip(), found.group(2), parameters(found.group(3))


def call(library, result, name, given):
    """"" where the function did as it should; what is wrong otherwise."""
    function = getattr(library, name)
    pointer = "*" in result
    function.restype = ctypes.c_void_p if pointer else TYPES.get(result)
    function.argtypes = [ctypes.c_void_p if "*" in one else TYPES[one.split()[0]] for one in given]
    answer = function(*[None if "*" in one else 0 for one in given])
    if pointer and answer is None and name not in MAY_BE_NULL:
        return "gave NULL"
    if pointer and answer is not None and not isinstance(ctypes.string_at(answer), bytes):
        return "gave no text"
    can_fail = any(one.startswith("hmmjit_error **") for one in given)
    if can_fail and answer not in range(1, 8):
        return f"gave status {answer}"
    if not can_fail and not pointer and result != "void" and answer != 0 \
            and name not in NOTHING_TO_REFUSE:
        return f"gave {answer}"
    return ""


def main():
    header, path = sys.argv[1:3]
    try:
        library = ctypes.CDLL(path)
    except OSError as error:
        if "cannot allocate memory in static TLS" in str(error) or "asan" in str(error):
            print("SKIPPED:", error)
            return SKIPPED
        raise
    failures = count = 0
    for result, name, given in functions(header):
        count += 1
        sys.stdout.flush()
        child = os.fork()
        if child == 0:
            wrong = call(library, result, name, given)
            if wrong:
                print(f"{name}: {wrong}")
            sys.stdout.flush()
            os._exit(1 if wrong else 0)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        if status < 0:
            print(f"{name}: ended by signal {-status}")
        failures += status != 0
    print(f"{count} functions called with NULL and zeros, {failures} failed")
    return 1 if failures or count < 90 else 0


if __name__ == "__main__":
    sys.exit(main())
