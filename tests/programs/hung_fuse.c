// SPDX-License-Identifier: Apache-2.0
// hung_fuse BACKING MOUNT: shows the directory tree BACKING at MOUNT, whose files can be written,
// as a FUSE file system that stops answering when it is told to. Prints READY when it serves; needs
// root.
//
// A line of standard input is an order, and each is followed by a line of output:
//   hang WHAT  hold requests from now on, of open, read, write, readlink, root (all that begins at
//              the root directory) or all; prints OK
//   answer     answer what was held, and all that comes; prints OK
//   held       print how many requests are held
// At the end of the input or SIGTERM it unmounts and ends, which fails what it holds. Before, not
// even SIGKILL frees who waits for a held request: as most servers, it ignores FUSE_INTERRUPT.
//
// The protocol is that of linux/fuse.h and Documentation/filesystems/fuse.rst. Nothing that was
// read once is read again, and nothing is read ahead: a program whose pages are there runs on while
// everything else of its file hangs. Names and attributes are asked for each time.
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

enum { MAX_NODES = 4096, MAX_HELD = 4096, REQUEST_BYTES = 64 << 10 };

static int device;
static volatile sig_atomic_t stopped;

// Directories and files that were looked up; node id n is nodes[n]. They are never given back, so
// FORGET means nothing here.
static struct node {
  int fd;  // O_PATH
  ino_t inode;
} nodes[MAX_NODES];
static uint64_t node_count = FUSE_ROOT_ID;

enum what { NOTHING, OPEN, READ, WRITE, READLINK, ROOT, ALL, WHATS };
static const char* const what_names[WHATS] = {"",         "open", "read", "write",
                                              "readlink", "root", "all"};
static enum what hung = NOTHING;

struct request {
  struct fuse_in_header header;
  union {
    char bytes[REQUEST_BYTES];
    struct fuse_open_in open;
    struct fuse_read_in read;
    struct fuse_write_in write;
    struct fuse_release_in release;
  };
};
static struct request* held[MAX_HELD];
static int held_count;

static void reply(const struct request* request, int error, const void* body, size_t size) {
  static char message[sizeof(struct fuse_out_header) + REQUEST_BYTES];
  const struct fuse_out_header header = {
      .len = sizeof header + size, .error = -error, .unique = request->header.unique};
  if (header.len > sizeof message) abort();
  memcpy(message, &header, sizeof header);
  if (size > 0) memcpy(message + sizeof header, body, size);
  // Fails for a request that its sender has given up.
  if (write(device, message, header.len) < 0 && errno != ENOENT) perror("hung_fuse: reply");
}

static void fail(const struct request* request, int error) {
  reply(request, error, NULL, 0);
}

static struct fuse_attr attributes_of(const struct stat* status) {
  return (struct fuse_attr){.ino = status->st_ino,
                            .size = (uint64_t)status->st_size,
                            .blocks = (uint64_t)status->st_blocks,
                            .atime = (uint64_t)status->st_atim.tv_sec,
                            .mtime = (uint64_t)status->st_mtim.tv_sec,
                            .ctime = (uint64_t)status->st_ctim.tv_sec,
                            .atimensec = (uint32_t)status->st_atim.tv_nsec,
                            .mtimensec = (uint32_t)status->st_mtim.tv_nsec,
                            .ctimensec = (uint32_t)status->st_ctim.tv_nsec,
                            .mode = status->st_mode,
                            .nlink = (uint32_t)status->st_nlink,
                            .uid = status->st_uid,
                            .gid = status->st_gid,
                            .blksize = 4096};
}

static void initialize(const struct request* request) {
  const struct fuse_init_out out = {.major = FUSE_KERNEL_VERSION,
                                    .minor = FUSE_KERNEL_MINOR_VERSION,
                                    .max_readahead = 0,
                                    .max_background = 64,
                                    .congestion_threshold = 48,
                                    .max_write = 4096,
                                    .time_gran = 1};
  reply(request, 0, &out, sizeof out);
}

// The node of an O_PATH descriptor, which it takes over; 0 when there are too many.
static uint64_t node_of(int fd, ino_t inode) {
  for (uint64_t id = FUSE_ROOT_ID; id <= node_count; ++id) {
    if (nodes[id].inode != inode) continue;
    close(fd);
    return id;
  }
  if (node_count + 1 >= MAX_NODES) return 0;
  nodes[++node_count] = (struct node){.fd = fd, .inode = inode};
  return node_count;
}

static void look_up(const struct request* request, int directory) {
  const int fd = openat(directory, request->bytes, O_PATH | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0) return fail(request, errno);
  struct stat status;
  if (fstat(fd, &status) != 0) return fail(request, errno);
  const uint64_t id = node_of(fd, status.st_ino);
  if (id == 0) return fail(request, ENFILE);
  const struct fuse_entry_out out = {.nodeid = id, .attr = attributes_of(&status)};
  reply(request, 0, &out, sizeof out);
}

static void get_attributes(const struct request* request, int fd) {
  struct stat status;
  if (fstat(fd, &status) != 0) return fail(request, errno);
  const struct fuse_attr_out out = {.attr = attributes_of(&status)};
  reply(request, 0, &out, sizeof out);
}

static void open_node(const struct request* request, int fd, bool directory) {
  char path[64];
  snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
  struct fuse_open_out out = {.open_flags = FOPEN_KEEP_CACHE};
  if (directory) {
    out.fh = (uintptr_t)opendir(path);
    if (out.fh == 0) return fail(request, errno);
  } else {
    const int opened = open(path, (int)(request->open.flags & O_ACCMODE) | O_CLOEXEC);
    if (opened < 0) return fail(request, errno);
    out.fh = (uint64_t)opened;
  }
  reply(request, 0, &out, sizeof out);
}

static void read_file(const struct request* request) {
  static char bytes[REQUEST_BYTES];
  const size_t wanted = request->read.size < sizeof bytes ? request->read.size : sizeof bytes;
  const ssize_t got = pread((int)request->read.fh, bytes, wanted, (off_t)request->read.offset);
  if (got < 0) return fail(request, errno);
  reply(request, 0, bytes, (size_t)got);
}

static void write_file(const struct request* request) {
  const struct fuse_write_in* const in = &request->write;
  const ssize_t size = pwrite((int)in->fh, in + 1, in->size, (off_t)in->offset);
  if (size < 0) return fail(request, errno);
  const struct fuse_write_out out = {.size = (uint32_t)size};
  reply(request, 0, &out, sizeof out);
}

static void read_link(const struct request* request, int fd) {
  char target[4096];
  const ssize_t length = readlinkat(fd, "", target, sizeof target);
  if (length < 0) return fail(request, errno);
  reply(request, 0, target, (size_t)length);
}

static void read_directory(const struct request* request) {
  DIR* const directory = (DIR*)(uintptr_t)request->read.fh;
  char bytes[4096];
  size_t used = 0;
  seekdir(directory, (long)request->read.offset);
  for (struct dirent* entry; (entry = readdir(directory)) != NULL;) {
    const size_t length = strlen(entry->d_name);
    const size_t size = FUSE_DIRENT_ALIGN(FUSE_NAME_OFFSET + length);
    if (used + size > sizeof bytes || used + size > request->read.size) break;
    struct fuse_dirent* const out = (struct fuse_dirent*)(bytes + used);
    memset(out, 0, size);
    out->ino = entry->d_ino;
    out->off = (uint64_t)telldir(directory);
    out->namelen = (uint32_t)length;
    out->type = entry->d_type;
    memcpy(out->name, entry->d_name, length);
    used += size;
  }
  reply(request, 0, bytes, used);
}

static void get_statistics(const struct request* request, int fd) {
  struct statvfs status;
  if (fstatvfs(fd, &status) != 0) return fail(request, errno);
  const struct fuse_statfs_out out = {.st = {.bsize = (uint32_t)status.f_bsize,
                                             .frsize = (uint32_t)status.f_frsize,
                                             .blocks = status.f_blocks,
                                             .namelen = (uint32_t)status.f_namemax}};
  reply(request, 0, &out, sizeof out);
}

static void answer(const struct request* request) {
  const uint64_t id = request->header.nodeid;
  const int fd = id >= FUSE_ROOT_ID && id <= node_count ? nodes[id].fd : -1;
  switch (request->header.opcode) {
    case FUSE_INIT:
      return initialize(request);
    case FUSE_LOOKUP:
      return look_up(request, fd);
    case FUSE_GETATTR:
      return get_attributes(request, fd);
    case FUSE_OPEN:
      return open_node(request, fd, false);
    case FUSE_OPENDIR:
      return open_node(request, fd, true);
    case FUSE_READ:
      return read_file(request);
    case FUSE_WRITE:
      return write_file(request);
    case FUSE_READLINK:
      return read_link(request, fd);
    case FUSE_READDIR:
      return read_directory(request);
    case FUSE_STATFS:
      return get_statistics(request, fd);
    case FUSE_FLUSH:
      return reply(request, 0, NULL, 0);
    case FUSE_RELEASE:
      close((int)request->release.fh);
      return reply(request, 0, NULL, 0);
    case FUSE_RELEASEDIR:
      closedir((DIR*)(uintptr_t)request->release.fh);
      return reply(request, 0, NULL, 0);
    case FUSE_FORGET:
    case FUSE_BATCH_FORGET:
    case FUSE_INTERRUPT:
      return;  // these want no reply
    default:
      return fail(request, ENOSYS);
  }
}

static bool is_hung(const struct request* request) {
  const uint32_t operation = request->header.opcode;
  switch (hung) {
    case OPEN:
      return operation == FUSE_OPEN;
    case READ:
      return operation == FUSE_READ;
    case WRITE:
      return operation == FUSE_WRITE;
    case READLINK:
      return operation == FUSE_READLINK;
    case ROOT:
      return request->header.nodeid == FUSE_ROOT_ID &&
             (operation == FUSE_LOOKUP || operation == FUSE_GETATTR || operation == FUSE_OPENDIR);
    case ALL:
      return operation != FUSE_FORGET && operation != FUSE_BATCH_FORGET &&
             operation != FUSE_INTERRUPT;
    default:
      return false;
  }
}

// False at the end of the file system.
static bool serve_one(void) {
  static struct request request;
  const ssize_t size = read(device, &request, sizeof request);
  if (size < 0) return errno == EINTR || errno == EAGAIN || errno == ENOENT;
  if (!is_hung(&request)) {
    answer(&request);
    return true;
  }
  if (held_count == MAX_HELD) return true;  // is never answered either
  held[held_count] = malloc((size_t)size);
  if (held[held_count] == NULL) return false;
  memcpy(held[held_count++], &request, (size_t)size);
  return true;
}

static void answer_held(void) {
  hung = NOTHING;
  for (int i = 0; i < held_count; ++i) {
    answer(held[i]);
    free(held[i]);
  }
  held_count = 0;
}

static bool hang(const char* name) {
  for (enum what what = OPEN; what < WHATS; ++what) {
    if (strcmp(name, what_names[what]) != 0) continue;
    hung = what;
    return true;
  }
  return false;
}

// False at the end of the orders, and for one that it does not know.
static bool obey_one(void) {
  char order[64];
  if (fgets(order, sizeof order, stdin) == NULL) return false;
  order[strcspn(order, "\n")] = '\0';
  if (strcmp(order, "held") == 0) {
    printf("%d\n", held_count);
  } else if (strcmp(order, "answer") == 0) {
    answer_held();
    puts("OK");
  } else if (strncmp(order, "hang ", 5) == 0 && hang(order + 5)) {
    puts("OK");
  } else {
    fprintf(stderr, "hung_fuse: no such order: %s\n", order);
    return false;
  }
  return true;
}

static void stop(int signal) {
  (void)signal;
  stopped = 1;
}

static int mount_at(const char* path) {
  device = open("/dev/fuse", O_RDWR | O_CLOEXEC | O_NONBLOCK);
  if (device < 0) return -1;
  char options[128];
  snprintf(options, sizeof options,
           "fd=%d,rootmode=40000,user_id=0,group_id=0,allow_other,default_permissions", device);
  return mount("hung_fuse", path, "fuse.hung_fuse", 0, options);
}

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  setvbuf(stdin, NULL, _IONBF, 0);
  setvbuf(stdout, NULL, _IOLBF, 0);
  const struct sigaction action = {.sa_handler = stop};
  sigaction(SIGTERM, &action, NULL);
  struct stat status;
  nodes[FUSE_ROOT_ID].fd = open(argv[1], O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (nodes[FUSE_ROOT_ID].fd < 0 || fstat(nodes[FUSE_ROOT_ID].fd, &status) != 0) {
    perror(argv[1]);
    return 1;
  }
  nodes[FUSE_ROOT_ID].inode = status.st_ino;
  if (mount_at(argv[2]) != 0) {
    perror("hung_fuse: mount");
    return 1;
  }
  puts("READY");
  struct pollfd polled[2] = {{.fd = device, .events = POLLIN}, {.fd = 0, .events = POLLIN}};
  while (!stopped) {
    if (poll(polled, 2, -1) < 0) continue;
    if (polled[0].revents != 0 && !serve_one()) break;
    if (polled[1].revents != 0 && !obey_one()) break;
  }
  umount2(argv[2], MNT_DETACH | UMOUNT_NOFOLLOW);
  return 0;
}
