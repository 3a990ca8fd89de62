// A library to be preloaded: the n-th call of one function of the C library fails.
//
// HMMJIT_FAULT=FUNCTION:N:ERRNO[:always] makes the N-th call (from 1) fail with errno ERRNO, with
// ":always" every later one as well. With a negative ERRNO the process gets the signal of that
// number before the call, which succeeds. Instead of ERRNO, a fault of network file systems: "slow"
// delays the call by HMMJIT_FAULT_MS milliseconds; with "stale", stat and its like return the
// attributes of a new file; "pretend" does nothing and reports success. "lock" is fcntl that sets a
// lock. With HMMJIT_FAULT_SIZE=BYTES only allocations of that size count. At exit, the number of
// calls is written to HMMJIT_FAULT_COUNT=FILE, so that a test knows the range of N.
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static char function[32];
static long failing;
static int error_number, always;
static enum { FAIL, SLOW, STALE, PRETEND } kind;
static long milliseconds = 200;
static size_t size_that_counts;  // 0: every one
static atomic_long calls;
static const char* count_file;
static atomic_int in_main;  // memory that fails before main ends any C++ program

__attribute__((constructor)) static void begin(void) {
  const char* fault = getenv("HMMJIT_FAULT");
  const char* wait = getenv("HMMJIT_FAULT_MS");
  char word[16] = "", what[16] = "";
  if (fault == NULL) return;
  sscanf(fault, "%31[^:]:%ld:%15[^:]:%15s", function, &failing, what, word);
  error_number = atoi(what);
  kind = strcmp(what, "slow") == 0      ? SLOW
         : strcmp(what, "stale") == 0   ? STALE
         : strcmp(what, "pretend") == 0 ? PRETEND
                                        : FAIL;
  if (wait != NULL) milliseconds = atol(wait);
  const char* size = getenv("HMMJIT_FAULT_SIZE");
  if (size != NULL) size_that_counts = (size_t)atol(size);
  always = strcmp(word, "always") == 0;
  count_file = getenv("HMMJIT_FAULT_COUNT");
  atomic_store(&calls, 0);
}

static void write_count(void) {
  if (count_file == NULL) return;
  char text[32];
  const int length = snprintf(text, sizeof text, "%ld\n", atomic_load(&calls));
  const int file = open(count_file, O_WRONLY | O_CREAT | O_TRUNC, 0666);
  ssize_t (*real)(int, const void*, size_t) =
      (ssize_t(*)(int, const void*, size_t))dlsym(RTLD_NEXT, "write");
  if (file < 0 || real(file, text, (size_t)length) != length) abort();
}
__attribute__((destructor)) static void end(void) { write_count(); }

// True, and sets errno, if this call must fail.
static int fails(const char* name) {
  if (function[0] == '\0' || strcmp(name, function) != 0) return 0;
  if (!atomic_load(&in_main) && strcmp(name, "malloc") == 0) return 0;
  const long call = atomic_fetch_add(&calls, 1) + 1;
  if (call != failing && !(always && failing > 0 && call > failing)) return 0;
  if (kind == SLOW) {
    const struct timespec pause = {milliseconds / 1000, milliseconds % 1000 * 1000000};
    nanosleep(&pause, NULL);
    return 0;
  }
  if (error_number < 0) {
    kill(getpid(), -error_number);
    return 0;
  }
  errno = error_number;
  return 1;
}

#define REAL(name)               \
  static __typeof__(&name) real; \
  if (real == NULL) real = (__typeof__(&name))dlsym(RTLD_NEXT, #name)

#define WRAP(result, failure, name, parameters, arguments) \
  result name parameters {                                 \
    REAL(name);                                            \
    if (fails(#name)) return failure;                      \
    return real arguments;                                 \
  }

WRAP(ssize_t, -1, read, (int file, void* to, size_t size), (file, to, size))
WRAP(ssize_t, -1, pread, (int file, void* to, size_t size, off_t at), (file, to, size, at))
WRAP(ssize_t, -1, write, (int file, const void* from, size_t size), (file, from, size))
WRAP(ssize_t, -1, pwrite, (int file, const void* from, size_t size, off_t at),
     (file, from, size, at))
WRAP(int, -1, rename, (const char* from, const char* to), (from, to))
WRAP(int, -1, renameat2, (int a, const char* from, int b, const char* to, unsigned flags),
     (a, from, b, to, flags))
// "sync" is either of these.
#define WRAP_SYNC(name)                                                 \
  int name(int file) {                                                  \
    REAL(name);                                                         \
    if (fails(#name) || fails("sync")) return kind == PRETEND ? 0 : -1; \
    return real(file);                                                  \
  }
WRAP_SYNC(fsync)
WRAP_SYNC(fdatasync)
WRAP(int, -1, fchmod, (int file, mode_t mode), (file, mode))
WRAP(int, -1, access, (const char* path, int mode), (path, mode))
WRAP(int, -1, unlink, (const char* path), (path))
WRAP(int, -1, ftruncate, (int file, off_t size), (file, size))
WRAP(void*, MAP_FAILED, mmap, (void* at, size_t size, int may, int flags, int file, off_t from),
     (at, size, may, flags, file, from))

// The attributes of a new file: empty, with old times.
static int stale(int result, struct stat* info) {
  if (result == 0 && S_ISREG(info->st_mode)) {
    info->st_size = info->st_blocks = 0;
    memset(&info->st_mtim, 0, sizeof info->st_mtim);
    memset(&info->st_ctim, 0, sizeof info->st_ctim);
  }
  return result;
}
#define WRAP_STAT(name, parameters, arguments)                                 \
  int name parameters {                                                        \
    REAL(name);                                                                \
    if (fails(#name)) return kind == STALE ? stale(real arguments, info) : -1; \
    return real arguments;                                                     \
  }
WRAP_STAT(fstat, (int file, struct stat* info), (file, info))
WRAP_STAT(stat, (const char* path, struct stat* info), (path, info))
WRAP_STAT(lstat, (const char* path, struct stat* info), (path, info))

// All commands of fcntl that the program uses take an int, a pointer or nothing.
int fcntl(int file, int command, ...) {
  REAL(fcntl);
  va_list rest;
  va_start(rest, command);
  void* argument = va_arg(rest, void*);
  va_end(rest);
  if ((command == F_OFD_SETLK || command == F_OFD_SETLKW) && fails("lock"))
    return kind == PRETEND ? 0 : -1;
  return real(file, command, argument);
}

// Called by the streams of the C++ library.
WRAP(FILE*, NULL, fopen, (const char* path, const char* mode), (path, mode))
FILE* fopen64(const char* path, const char* mode) { return fopen(path, mode); }
WRAP(DIR*, NULL, opendir, (const char* path), (path))

// close releases the descriptor even if it fails.
int close(int file) {
  REAL(close);
  const int failed = fails("close");
  const int error = errno;
  const int result = real(file);
  if (failed) errno = error;
  return failed ? -1 : result;
}

int open(const char* path, int flags, ...) {
  REAL(open);
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(rest, mode_t) : 0;
  va_end(rest);
  if (fails("open")) return -1;
  return real(path, flags, mode);
}

int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*run)(void*),
                   void* argument) {
  REAL(pthread_create);
  if (fails("pthread_create")) return error_number;
  return real(thread, attributes, run, argument);
}

// The entry point of the C library.
typedef int (*main_function)(int, char**, char**);
typedef void (*nothing)(void);
static main_function real_main;
static int marked_main(int count, char** words, char** environment) {
  atomic_store(&in_main, 1);
  return real_main(count, words, environment);
}
int __libc_start_main(main_function program, int count, char** words, nothing init, nothing fini,
                      nothing rtld_fini, void* stack_end) {
  int (*real)(main_function, int, char**, nothing, nothing, nothing, void*);
  *(void**)&real = dlsym(RTLD_NEXT, "__libc_start_main");
  real_main = program;
  return real(marked_main, count, words, init, fini, rtld_fini, stack_end);
}

// "malloc" is every function that allocates. dlsym may allocate, so the real functions are found by
// their second names in the C library.
extern void* __libc_malloc(size_t);
extern void* __libc_calloc(size_t, size_t);
extern void* __libc_realloc(void*, size_t);
extern void* __libc_memalign(size_t, size_t);
static int allocation_fails(size_t size) {
  return (size_that_counts == 0 || size == size_that_counts) && fails("malloc");
}
void* malloc(size_t size) { return allocation_fails(size) ? NULL : __libc_malloc(size); }
void* calloc(size_t count, size_t size) {
  return allocation_fails(count * size) ? NULL : __libc_calloc(count, size);
}
void* realloc(void* from, size_t size) {
  return allocation_fails(size) ? NULL : __libc_realloc(from, size);
}
void* aligned_alloc(size_t alignment, size_t size) {
  return allocation_fails(size) ? NULL : __libc_memalign(alignment, size);
}
int posix_memalign(void** to, size_t alignment, size_t size) {
  if (allocation_fails(size)) return ENOMEM;
  *to = __libc_memalign(alignment, size);
  return *to == NULL ? ENOMEM : 0;
}

// Programs that end at once run no destructors.
void _exit(int status) {
  write_count();
  void (*real)(int) = (void (*)(int))dlsym(RTLD_NEXT, "_exit");
  real(status);
  abort();
}
