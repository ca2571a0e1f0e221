/* Copyright the onnx-addnorm authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * A library for LD_PRELOAD, for tests only: makes one call of the C library
 * fail, transfer less than was asked for, or be the moment of a signal; and
 * starts a dynamically linked program many times for the price of a fork.
 *
 * It is not a sandbox, and calls inside the C library (stdio, realpath) are not
 * seen. tests/python/fault_server.py speaks its protocol: with the descriptor
 * of a socket in ADDNORM_FAULT_SERVER, the program stops before main. For each
 * request (see below) it forks a child, which runs main, and answers with how
 * the child ended. Without the variable nothing changes, unless
 * ADDNORM_FAULT_OLD_KERNEL is set: then there is no openat2, no O_TMPFILE, no
 * RENAME_NOREPLACE, no fallocate and no sharing of blocks, as on old kernels
 * and plain file systems, so that what replaces them is tested too.
 *
 *   cc -shared -fPIC -o fault_shim.so fault_shim.c
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* Kinds of calls, in the order of KINDS in fault_server.py. The last one counts
 * all others but allocations, which are too many to stop at each. */
enum Kind {
  kOpen,
  kOpenat,
  kOpenat2,
  kRead,
  kPread,
  kWrite,
  kPwrite,
  kFsync,
  kRename,
  kLink,
  kFtruncate,
  kFallocate,
  kMmap,
  kStat,
  kFcntl,
  kClose,
  kMkdir,
  kMemfd,
  kFchmod,
  kOpendir,
  kReadlink,
  kLseek,
  kUnlink,
  kClone,
  kCopyFileRange,
  kStatx,
  kStdout,
  kThread,
  kMalloc,
  kAny,
  kKinds
};

enum Action { kNone, kErrno, kShort, kSignalBefore, kSignalAfter };

/* What a request begins with; then come strings, each with its NUL: folder,
 * file for stdin, for stdout, for stderr, and the arguments of main. */
struct Request {
  int32_t kind;
  int32_t action;
  int32_t value;    /* an errno value or a signal's number */
  int32_t persists; /* later calls of the kind fail too */
  int64_t number;   /* which call, from 1 */
  uint64_t memory;  /* RLIMIT_AS in bytes; 0: none */
  uint64_t file;    /* RLIMIT_FSIZE in bytes; 0: none */
  uint32_t seconds; /* until SIGALRM ends the child */
  uint32_t strings; /* how many */
};

struct Answer {
  int32_t status; /* of wait */
  int32_t hits;
  int64_t peak_kib;
  int64_t cpu_microseconds;
  int64_t calls[kKinds];
};

struct Counts {
  atomic_long hits;
  atomic_long calls[kKinds];
};

static struct Request request; /* kNone until a child begins */
static struct Counts* counts;  /* shared with the server; NULL before */

/* ---- the decision at each call ------------------------------------------- */

static int IsHit(enum Kind kind) {
  const long number = 1 + atomic_fetch_add(&counts->calls[kind], 1);
  if ((int)kind != request.kind) return 0;
  const int hit =
      request.persists ? number >= request.number : number == request.number;
  if (hit) atomic_fetch_add(&counts->hits, 1);
  return hit;
}

/* What to do instead of the call: kErrno (errno is set), kShort, or kNone. */
static enum Action Before(enum Kind kind) {
  if (counts == NULL) return kNone;
  const int of_any = kind != kMalloc && IsHit(kAny);
  const int of_kind = IsHit(kind);
  if (!of_any && !of_kind) return kNone;
  if (request.action == kSignalBefore) {
    raise(request.value);
    return kNone;
  }
  if (request.action == kErrno) errno = request.value;
  return (enum Action)request.action;
}

static void After(enum Action action) {
  const int saved = errno;
  if (action == kSignalAfter) raise(request.value);
  errno = saved;
}

static size_t Length(enum Action action, size_t length) {
  return action == kShort && length > 1 ? length / 2 : length;
}

static int IsOldKernel(void) {
  static int is_old = -1;
  if (is_old < 0) is_old = getenv("ADDNORM_FAULT_OLD_KERNEL") != NULL;
  return is_old;
}

/* Whether the call needs what old kernels do not have; errno says so. */
static int IsTooNew(int needs_new, int error) {
  if (!needs_new || !IsOldKernel()) return 0;
  errno = error;
  return 1;
}

/* ---- calls --------------------------------------------------------------- */

#define REAL(name) ((__typeof__(&name))Find(#name))

static void* Find(const char* name) { return dlsym(RTLD_NEXT, name); }

/* A call that can only fail or succeed. */
#define CALL(kind, type, failed, name, parameters, arguments) \
  type name parameters {                                      \
    static __typeof__(&name) real;                            \
    if (real == NULL) real = REAL(name);                      \
    const enum Action action = Before(kind);                  \
    if (action == kErrno) return failed;                      \
    type result = real arguments;                             \
    After(action);                                            \
    return result;                                            \
  }

/* A call that may transfer less than `length`. */
#define TRANSFER(kind, name, parameters, ...) \
  ssize_t name parameters {                   \
    static __typeof__(&name) real;            \
    if (real == NULL) real = REAL(name);      \
    const enum Action action = Before(kind);  \
    if (action == kErrno) return -1;          \
    length = Length(action, length);          \
    const ssize_t result = real(__VA_ARGS__); \
    After(action);                            \
    return result;                            \
  }

static int IsUnnamed(int flags) { return (flags & O_TMPFILE) == O_TMPFILE; }

static mode_t Mode(int flags, va_list* list) {
  const int creates = (flags & O_CREAT) || IsUnnamed(flags);
  return creates ? va_arg(*list, mode_t) : 0;
}

#define OPEN(name)                                         \
  int name(const char* path, int flags, ...) {             \
    va_list list;                                          \
    va_start(list, flags);                                 \
    const mode_t mode = Mode(flags, &list);                \
    va_end(list);                                          \
    const enum Action action = Before(kOpen);              \
    if (action == kErrno) return -1;                       \
    if (IsTooNew(IsUnnamed(flags), EOPNOTSUPP)) return -1; \
    const int fd = REAL(name)(path, flags, mode);          \
    After(action);                                         \
    return fd;                                             \
  }

#define OPENAT(name)                                       \
  int name(int folder, const char* path, int flags, ...) { \
    va_list list;                                          \
    va_start(list, flags);                                 \
    const mode_t mode = Mode(flags, &list);                \
    va_end(list);                                          \
    const enum Action action = Before(kOpenat);            \
    if (action == kErrno) return -1;                       \
    const int fd = REAL(name)(folder, path, flags, mode);  \
    After(action);                                         \
    return fd;                                             \
  }

OPEN(open)
OPEN(open64)
OPENAT(openat)
OPENAT(openat64)

TRANSFER(kRead, read, (int fd, void* to, size_t length), fd, to, length)
TRANSFER(kPread, pread, (int fd, void* to, size_t length, off_t at), fd, to,
         length, at)
TRANSFER(kPread, pread64, (int fd, void* to, size_t length, off64_t at), fd, to,
         length, at)
TRANSFER(kWrite, write, (int fd, const void* from, size_t length), fd, from,
         length)
TRANSFER(kPwrite, pwrite, (int fd, const void* from, size_t length, off_t at),
         fd, from, length, at)
TRANSFER(kPwrite, pwrite64,
         (int fd, const void* from, size_t length, off64_t at), fd, from,
         length, at)

CALL(kFsync, int, -1, fsync, (int fd), (fd))
CALL(kFsync, int, -1, fdatasync, (int fd), (fd))
CALL(kRename, int, -1, rename, (const char* from, const char* to), (from, to))
CALL(kRename, int, -1, renameat,
     (int a, const char* from, int b, const char* to), (a, from, b, to))
CALL(kLink, int, -1, link, (const char* from, const char* to), (from, to))
CALL(kLink, int, -1, linkat,
     (int a, const char* from, int b, const char* to, int flags),
     (a, from, b, to, flags))
CALL(kFtruncate, int, -1, ftruncate, (int fd, off_t length), (fd, length))
CALL(kFtruncate, int, -1, ftruncate64, (int fd, off64_t length), (fd, length))
CALL(kUnlink, int, -1, unlink, (const char* path), (path))
CALL(kUnlink, int, -1, rmdir, (const char* path), (path))
CALL(kCopyFileRange, ssize_t, -1, copy_file_range,
     (int a, off64_t* from, int b, off64_t* to, size_t length, unsigned flags),
     (a, from, b, to, length, flags))
CALL(kStatx, int, -1, statx,
     (int fd, const char* path, int flags, unsigned mask, struct statx* to),
     (fd, path, flags, mask, to))
CALL(kMmap, void*, MAP_FAILED, mmap,
     (void* at, size_t length, int access, int flags, int fd, off_t offset),
     (at, length, access, flags, fd, offset))
CALL(kStat, int, -1, stat, (const char* path, struct stat* to), (path, to))
CALL(kStat, int, -1, lstat, (const char* path, struct stat* to), (path, to))
CALL(kStat, int, -1, fstat, (int fd, struct stat* to), (fd, to))
CALL(kMkdir, int, -1, mkdir, (const char* path, mode_t mode), (path, mode))
CALL(kMemfd, int, -1, memfd_create, (const char* name, unsigned flags),
     (name, flags))
CALL(kFchmod, int, -1, fchmod, (int fd, mode_t mode), (fd, mode))
CALL(kOpendir, DIR*, NULL, opendir, (const char* path), (path))
CALL(kOpendir, DIR*, NULL, fdopendir, (int fd), (fd))
CALL(kReadlink, ssize_t, -1, readlink,
     (const char* path, char* to, size_t size), (path, to, size))
CALL(kReadlink, ssize_t, -1, readlinkat,
     (int fd, const char* path, char* to, size_t size), (fd, path, to, size))
CALL(kLseek, off_t, -1, lseek, (int fd, off_t at, int whence), (fd, at, whence))

int pthread_create(pthread_t* thread, const pthread_attr_t* attributes,
                   void* (*start)(void*), void* argument) {
  const enum Action action = Before(kThread);
  if (action == kErrno) return request.value;
  return REAL(pthread_create)(thread, attributes, start, argument);
}

/* The descriptor is closed also where close reports an error. */
int close(int fd) {
  const enum Action action = Before(kClose);
  const int result = REAL(close)(fd);
  After(action);
  if (action != kErrno) return result;
  errno = request.value;
  return -1;
}

int fcntl(int fd, int command, ...) {
  va_list list;
  va_start(list, command);
  void* argument = va_arg(list, void*);
  va_end(list);
  const enum Action action = Before(kFcntl);
  if (action == kErrno) return -1;
  const int result = REAL(fcntl)(fd, command, argument);
  After(action);
  return result;
}

int renameat2(int a, const char* from, int b, const char* to, unsigned flags) {
  const enum Action action = Before(kRename);
  if (action == kErrno || IsTooNew(flags != 0, EINVAL)) return -1;
  const int result = REAL(renameat2)(a, from, b, to, flags);
  After(action);
  return result;
}

int fallocate(int fd, int mode, off_t at, off_t length) {
  const enum Action action = Before(kFallocate);
  if (action == kErrno || IsTooNew(1, EOPNOTSUPP)) return -1;
  const int result = REAL(fallocate)(fd, mode, at, length);
  After(action);
  return result;
}

/* Terminals are asked by ioctl too; only sharing of blocks counts. */
int ioctl(int fd, unsigned long request_code, ...) {
  va_list list;
  va_start(list, request_code);
  void* argument = va_arg(list, void*);
  va_end(list);
  const int is_clone = request_code == FICLONE || request_code == FICLONERANGE;
  const enum Action action = is_clone ? Before(kClone) : kNone;
  if (action == kErrno || IsTooNew(is_clone, EOPNOTSUPP)) return -1;
  const int result = REAL(ioctl)(fd, request_code, argument);
  After(action);
  return result;
}

/* Reports on standard output; messages on standard error are not a result. */
size_t fwrite(const void* from, size_t size, size_t count, FILE* stream) {
  const enum Action action = stream == stdout ? Before(kStdout) : kNone;
  if (action == kErrno) return 0;
  const size_t result = REAL(fwrite)(from, size, count, stream);
  After(action);
  return result;
}

int fflush(FILE* stream) {
  const enum Action action = stream == stdout ? Before(kStdout) : kNone;
  if (action == kErrno) return EOF;
  const int result = REAL(fflush)(stream);
  After(action);
  return result;
}

/* glibc has no function of its own for openat2. */
long syscall(long number, ...) {
  va_list list;
  va_start(list, number);
  long a[6];
  for (int i = 0; i < 6; ++i) a[i] = va_arg(list, long);
  va_end(list);
  const int is_open = number == SYS_openat2;
  const enum Action action = is_open ? Before(kOpenat2) : kNone;
  if (action == kErrno || IsTooNew(is_open, ENOSYS)) return -1;
  const long result = REAL(syscall)(number, a[0], a[1], a[2], a[3], a[4], a[5]);
  After(action);
  return result;
}

/* ---- allocation ---------------------------------------------------------- */

/* dlsym may allocate, so these come from glibc by their other names. */
extern void* __libc_malloc(size_t size);
extern void* __libc_calloc(size_t count, size_t size);
extern void* __libc_realloc(void* old, size_t size);
extern void* __libc_memalign(size_t alignment, size_t size);

void* malloc(size_t size) {
  return Before(kMalloc) == kErrno ? NULL : __libc_malloc(size);
}

void* calloc(size_t count, size_t size) {
  return Before(kMalloc) == kErrno ? NULL : __libc_calloc(count, size);
}

void* realloc(void* old, size_t size) {
  return Before(kMalloc) == kErrno ? NULL : __libc_realloc(old, size);
}

void* aligned_alloc(size_t alignment, size_t size) {
  return Before(kMalloc) == kErrno ? NULL : __libc_memalign(alignment, size);
}

int posix_memalign(void** to, size_t alignment, size_t size) {
  if (Before(kMalloc) == kErrno) return ENOMEM;
  *to = __libc_memalign(alignment, size);
  return *to == NULL ? ENOMEM : 0;
}

/* ---- the server ---------------------------------------------------------- */

typedef int (*Main)(int, char**, char**);
static Main program;

/* The first process ends when the other side is gone. */
static void ReadAll(int fd, void* to, size_t length) {
  for (char* next = to; length > 0;) {
    const ssize_t n = REAL(read)(fd, next, length);
    if (n <= 0) _exit(0);
    next += n;
    length -= (size_t)n;
  }
}

static char* ReadString(int fd) {
  uint32_t length = 0;
  ReadAll(fd, &length, sizeof length);
  char* text = __libc_malloc(length + 1);
  ReadAll(fd, text, length);
  text[length] = '\0';
  return text;
}

static void Redirect(int to, const char* path, int flags) {
  const int fd = REAL(open)(path, flags, 0666);
  if (fd < 0) _exit(125);
  dup2(fd, to);
  REAL(close)(fd);
}

static void Limit(__rlimit_resource_t resource, uint64_t most) {
  const struct rlimit limit = {most, most};
  if (most > 0) setrlimit(resource, &limit);
}

static int RunChild(const struct Request* given, char** strings, char** env) {
  if (chdir(strings[0]) != 0) _exit(125);
  Redirect(0, strings[1], O_RDONLY);
  Redirect(1, strings[2], O_WRONLY | O_CREAT | O_TRUNC);
  Redirect(2, strings[3], O_WRONLY | O_CREAT | O_TRUNC);
  Limit(RLIMIT_AS, given->memory);
  Limit(RLIMIT_FSIZE, given->file);
  const uint64_t no_core = 1; /* too small for one */
  Limit(RLIMIT_CORE, no_core);
  alarm(given->seconds);
  request = *given;
  return program((int)given->strings - 4, strings + 4, env);
}

static void Serve(int fd, char** env, struct Counts* shared) {
  struct Request next;
  ReadAll(fd, &next, sizeof next);
  char** strings = __libc_calloc(next.strings + 1, sizeof *strings);
  for (uint32_t i = 0; i < next.strings; ++i) strings[i] = ReadString(fd);
  memset(shared, 0, sizeof *shared);
  const pid_t child = fork();
  if (child == 0) {
    REAL(close)(fd);
    counts = shared;
    exit(RunChild(&next, strings, env));
  }
  struct Answer answer = {0};
  struct rusage usage = {0};
  if (child < 0 || wait4(child, &answer.status, 0, &usage) != child) _exit(1);
  answer.hits = (int32_t)shared->hits;
  answer.peak_kib = usage.ru_maxrss;
  answer.cpu_microseconds =
      (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000L +
      usage.ru_utime.tv_usec + usage.ru_stime.tv_usec;
  for (int i = 0; i < kKinds; ++i) answer.calls[i] = shared->calls[i];
  for (uint32_t i = 0; i < next.strings; ++i) free(strings[i]);
  free(strings);
  if (REAL(write)(fd, &answer, sizeof answer) != sizeof answer) _exit(0);
}

static int ServingMain(int argc, char** argv, char** env) {
  const char* socket = getenv("ADDNORM_FAULT_SERVER");
  if (socket == NULL) return program(argc, argv, env);
  struct Counts* shared =
      REAL(mmap)(NULL, sizeof *shared, PROT_READ | PROT_WRITE,
                 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) _exit(1);
  for (;;) Serve(atoi(socket), env, shared);
}

int __libc_start_main(Main given, int argc, char** argv, void (*init)(void),
                      void (*fini)(void), void (*rtld_fini)(void), void* end) {
  typedef int (*Start)(Main, int, char**, void (*)(void), void (*)(void),
                       void (*)(void), void*);
  program = given;
  const Start start = (Start)Find("__libc_start_main");
  return start(ServingMain, argc, argv, init, fini, rtld_fini, end);
}
