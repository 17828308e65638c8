/* Stands in for libcudart: every exported symbol stores its registers in a frame, sends the frame to
   tilescope, and returns what comes back. What a function means is known to tilescope alone, but for
   the configuration of a launch, which <<<>>> stores for the kernel's host stub.

   A program is run with this library in LD_PRELOAD and the path of a Unix socket in TILESCOPE_SOCKET.
   While a call is under way tilescope may give orders: call a function of the program, map or unmap
   memory, print, store a text, read or write memory. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

typedef struct {
  uint64_t reg[6], xmm[8], stack, caller, index, thread, launched_from, unused;
} Frame;

typedef struct {
  uint64_t op, a, b, c, d;
} Order;

enum { RETURN, CALL, MAP, UNMAP, PRINT, TEXT, FLUSH, READ, WRITE, SHARE, UNSHARE, FIND };

static const uint64_t ANSWER = ~0ull; /* the index of a frame that answers an order */
static int channel = -1;
static pthread_mutex_t lock;
static __thread uint64_t thread; /* this one's number, once it has been asked for */
static __thread Frame configurations[64]; /* of this thread's <<<>>> that are under way */
static __thread unsigned configured;
static __thread uint64_t launched_from; /* where the <<<>>> stands whose launch comes next */

static void die(const char *what) {
  fprintf(stderr, "tilescope: %s\n", what);
  _exit(121);
}

static void make_lock(void) {
  pthread_mutexattr_t recursive;
  pthread_mutexattr_init(&recursive);
  pthread_mutexattr_settype(&recursive, PTHREAD_MUTEX_RECURSIVE);
  pthread_mutex_init(&lock, &recursive);
}

static void after_fork(void) {
  if (channel >= 0) close(channel);
  channel = -1;
  thread = 0;
  make_lock();
}

__attribute__((constructor)) static void begin(void) {
  make_lock();
  pthread_atfork(0, 0, after_fork);
}

static void receive(void *to, size_t bytes) {
  for (char *at = to; bytes;) {
    ssize_t count = recv(channel, at, bytes, 0);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) _exit(121); /* tilescope has ended, and has said why */
    at += count, bytes -= count;
  }
}

static void transmit(const void *from, size_t bytes) {
  for (const char *at = from; bytes;) {
    ssize_t count = send(channel, at, bytes, MSG_NOSIGNAL);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) _exit(121);
    at += count, bytes -= count;
  }
}

/* Send memory that may not be readable: whether it is. Zeros stand for what is not. */
static int transmit_memory(const char *at, size_t bytes) {
  static const char zeros[4096];
  int readable = 1;
  while (bytes) {
    size_t part = readable || bytes < sizeof zeros ? bytes : sizeof zeros;
    ssize_t count = send(channel, readable ? at : zeros, part, MSG_NOSIGNAL);
    if (count < 0 && errno == EFAULT && readable) readable = 0;
    else if (count < 0 && errno == EINTR) continue;
    else if (count <= 0) _exit(121);
    else at += count, bytes -= count;
  }
  return readable;
}

/* Receive into memory that may not be writable: whether it is. The rest is thrown away if not. */
static int receive_memory(char *at, size_t bytes) {
  static char waste[4096];
  int writable = 1;
  while (bytes) {
    size_t part = writable || bytes < sizeof waste ? bytes : sizeof waste;
    ssize_t count = recv(channel, writable ? at : waste, part, 0);
    if (count < 0 && errno == EFAULT && writable) writable = 0;
    else if (count < 0 && errno == EINTR) continue;
    else if (count <= 0) _exit(121);
    else at += count, bytes -= count;
  }
  return writable;
}

/* An order, and the file descriptor that comes with it or -1. */
static int receive_order(Order *order) {
  char room[CMSG_SPACE(sizeof(int))];
  struct iovec part = {order, sizeof *order};
  struct msghdr message = {0};
  message.msg_iov = &part, message.msg_iovlen = 1;
  message.msg_control = room, message.msg_controllen = sizeof room;
  ssize_t count;
  do count = recvmsg(channel, &message, MSG_CMSG_CLOEXEC);
  while (count < 0 && errno == EINTR);
  if (count <= 0) _exit(121);
  if (count < (ssize_t)sizeof *order) receive((char *)order + count, sizeof *order - count);
  struct cmsghdr *control = CMSG_FIRSTHDR(&message);
  int file = -1;
  if (control) memcpy(&file, CMSG_DATA(control), sizeof file);
  return file;
}

static void attach(void) {
  const char *path = getenv("TILESCOPE_SOCKET");
  if (!path) die("run this program with: tilescope exec");
  prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0); /* so that Yama lets tilescope read memory */
  struct sockaddr_un address = {AF_UNIX, {0}};
  strncpy(address.sun_path, path, sizeof address.sun_path - 1);
  channel = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (connect(channel, (struct sockaddr *)&address, sizeof address)) die("the simulator is gone");
  uint64_t pid = getpid();
  transmit(&pid, sizeof pid);
}

static char *receive_text(size_t bytes) {
  char *text = malloc(bytes + 1);
  if (!text) die("out of memory");
  receive(text, bytes);
  text[bytes] = 0;
  return text;
}

/* New pages get the content of the old ones, and then their place. Copy and move are one piece of
   assembler text: the pages may hold this thread's stack, so nothing may be pushed in between. */
static void *replace_pages(void *at, size_t bytes, int file) {
  int flags = file < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED;
  void *made = mmap(0, bytes, PROT_READ | PROT_WRITE, flags, file, 0), *from = at;
  if (made == MAP_FAILED) return 0;
  register long how __asm__("r10") = MREMAP_MAYMOVE | MREMAP_FIXED;
  register void *place __asm__("r8") = at;
  register size_t size __asm__("rdx") = bytes;
  uint64_t result;
  __asm__ volatile("mov %%rdi, %%r9\n\tcld\n\trep movsb\n\t"
                   "mov %%r9, %%rdi\n\tmov %%rdx, %%rsi\n\tmov %[mremap], %%eax\n\tsyscall"
                   : "=a"(result), "+D"(made), "+S"(from), "+c"(bytes)
                   : "r"(how), "r"(place), "r"(size), [mremap] "i"(SYS_mremap)
                   : "r9", "r11", "cc", "memory");
  return result > -4096ull ? 0 : at;
}

/* The arguments: grid and block, each in two registers, bytes of shared memory, the stream. */
static uint64_t push_configuration(const Frame *frame) {
  if (configured == sizeof configurations / sizeof *configurations) die("too many launches nested in <<<>>>");
  configurations[configured++] = *frame;
  return 0;
}

/* The arguments: where to put them. */
static uint64_t pop_configuration(const Frame *frame) {
  if (!configured) return 1; /* cudaErrorInvalidValue */
  const Frame *made = &configurations[--configured];
  memcpy((void *)frame->reg[0], &made->reg[0], 12);
  memcpy((void *)frame->reg[1], &made->reg[2], 12);
  memcpy((void *)frame->reg[2], &made->reg[4], 8);
  memcpy((void *)frame->reg[3], &made->reg[5], 8);
  launched_from = made->caller;
  return 0;
}

/* Exported: the stand-ins for cuBLAS and others pass their frames on to it, too. */
uint64_t tilescope_call(Frame *frame) {
  if (IS_PUSH(frame->index)) return push_configuration(frame);
  if (IS_POP(frame->index)) return pop_configuration(frame);
  int error = errno;
  pthread_mutex_lock(&lock);
  if (channel < 0) attach();
  if (!thread) thread = syscall(SYS_gettid);
  frame->thread = thread;
  frame->launched_from = launched_from;
  frame->unused = launched_from = 0;
  transmit(frame, sizeof *frame);
  for (;;) {
    Order order;
    int file = receive_order(&order);
    Frame answer = {0};
    answer.index = ANSWER;
    switch (order.op) {
    case RETURN:
      pthread_mutex_unlock(&lock);
      errno = error;
      return order.a;
    case CALL: /* in this thread: the lock is recursive, the function may call the runtime */
      ((void (*)(uint64_t, uint64_t, uint64_t))order.a)(order.b, order.c, order.d);
      break;
    case MAP:
      answer.reg[0] = (uint64_t)mmap((void *)order.a, order.b, PROT_READ | PROT_WRITE,
                                     MAP_SHARED | MAP_FIXED_NOREPLACE, file, 0);
      close(file);
      break;
    case UNMAP:
      answer.reg[0] = munmap((void *)order.a, order.b);
      break;
    case PRINT: {
      char *text = receive_text(order.a);
      fwrite(text, 1, order.a, stdout);
      free(text);
      break;
    }
    case TEXT: /* for cudaGetErrorString: lives as long as the program */
      answer.reg[0] = (uint64_t)receive_text(order.a);
      break;
    case FLUSH:
      fflush(stdout);
      break;
    case READ: /* where process_vm_readv is not allowed */
      answer.reg[0] = transmit_memory((char *)order.a, order.b);
      break;
    case WRITE:
      answer.reg[0] = receive_memory((char *)order.a, order.b);
      break;
    case SHARE: /* cudaHostRegister: pages become a file's, which has their content */
    case UNSHARE:
      answer.reg[0] = (uint64_t)replace_pages((void *)order.a, order.b, file);
      if (file >= 0) close(file);
      break;
    case FIND: { /* a function of the driver: the names of library and function, in this order */
      char *names = receive_text(order.a);
      void *library = dlopen(names, RTLD_LAZY | RTLD_GLOBAL);
      if (library) answer.reg[0] = (uint64_t)dlsym(library, names + strlen(names) + 1);
      free(names);
      break;
    }
    default:
      die("an order that this shim does not know");
    }
    transmit(&answer, sizeof answer);
  }
}
