/* SPDX-License-Identifier: Apache-2.0 */

#ifndef TORPOR_CLINUX_H
#define TORPOR_CLINUX_H

// Functions that Swift's `import Glibc` does not provide, or that Swift cannot call; each comment gives the reason.
// They are implemented in C files, because _GNU_SOURCE must not apply to other modules that import this header. On
// failure, all of them return -1 and set errno, like libc's functions.

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

/// The credentials of a message's sender or a connection's peer. libc's struct ucred needs _GNU_SOURCE.
typedef struct {
    int32_t pid;
    uint32_t uid;
    uint32_t gid;
} tlx_credentials;

/// Calls pidfd_open(2), which Swift's Glibc lacks. The descriptor is close-on-exec.
int tlx_pidfd_open(pid_t pid, unsigned int flags);
/// Calls pidfd_send_signal(2), which Swift's Glibc lacks.
int tlx_pidfd_send_signal(int pidfd, int signo);
/// Sends SIGKILL to a whole process group, by a flag of pidfd_send_signal(2) that older headers do not define.
int tlx_pidfd_kill_group(int pidfd);
/// The number of bytes that a pid takes as text, including its NUL.
#define TLX_PID_ROOM 12
/// Starts a program and writes its pid as text into its environment, at each of `places`, a list that ends with NULL.
/// Each place must have TLX_PID_ROOM bytes. Returns the child's pid, or -1.
pid_t tlx_spawn_with_own_pid(const char *path, char *const arguments[], char *const environment[], char *const places[]);
/// Starts a program with the descriptors in `standard` as standard input, output and error. The kernel kills the
/// program when the calling thread ends (PR_SET_PDEATHSIG, which posix_spawn cannot set). Returns the child's pid, or
/// -1.
pid_t tlx_spawn_dependent(const char *path, char *const arguments[], char *const environment[], const int standard[3]);
/// Calls close_range(2), which needs _GNU_SOURCE.
int tlx_close_range(unsigned int first, unsigned int last, int flags);
/// Calls memfd_create(2), which needs _GNU_SOURCE. The memfd is close-on-exec and can be sealed.
int tlx_memfd_create(const char *name);
/// Seals a memfd, so that its size is fixed and later mappings cannot write to it. F_ADD_SEALS needs _GNU_SOURCE.
int tlx_memfd_seal(int fd);
/// Seals a memfd, so that its size is fixed. F_ADD_SEALS needs _GNU_SOURCE.
int tlx_memfd_bound(int fd);
/// Call process_madvise(2) and process_mrelease(2), for which older libcs have no wrapper.
ssize_t tlx_process_madvise(int pidfd, const struct iovec *ranges, size_t count, int advice);
int tlx_process_mrelease(int pidfd);
/// The values of MADV_COLD and MADV_PAGEOUT, which Swift's Glibc does not import.
extern const int tlx_madv_cold, tlx_madv_pageout;

/// Calls recvmsg(2) with control messages, because Swift cannot import the CMSG macros. Never blocks (MSG_DONTWAIT).
/// Received descriptors are close-on-exec. Accepts up to *fd_count descriptors, closes further ones, and sets *fd_count
/// to the number that it accepted. Sets credentials->uid to ~0 if the message has no credentials. In *truncated, bit 0
/// means that data was truncated, bit 1 that control data was. *nanoseconds is set to the time at which a datagram was
/// sent, if the socket has SO_TIMESTAMPNS; must be NULL if not.
ssize_t tlx_receive(int fd, void *buffer, size_t size, int *fds, size_t *fd_count, tlx_credentials *credentials,
                    int *truncated, int64_t *nanoseconds, int peek);
/// Sets or clears SO_TIMESTAMPNS.
int tlx_stamp(int fd, int is_on);
/// Reads from a stream socket; 0 at its end. If descriptors were sent with the next data, reads nothing, and sets
/// *has_descriptors: they would be closed, which may block. Never blocks.
ssize_t tlx_read_plain(int fd, void *buffer, size_t size, int *has_descriptors);
/// Makes data that is sent out of band (MSG_OOB) be read in its order. Otherwise the kernel drops it with its
/// descriptors when it is read past, and MSG_PEEK does not show it.
int tlx_read_urgent_inline(int fd);
/// Discards the next datagram, and closes the descriptors that came with it.
int tlx_drop(int fd);
/// Starts (1) or stops (0) a timer that interrupts this thread with SIGALRM every 5 ms, so that a call such as close(2)
/// cannot block the thread for longer. Does nothing if no timer can be created.
void tlx_promptly(int begins);
/// Calls sendmsg(2) with at most 253 descriptors, because Swift cannot import the CMSG macros. Never raises SIGPIPE
/// (MSG_NOSIGNAL), and never blocks if `wait` is 0.
ssize_t tlx_send(int fd, const void *buffer, size_t size, const int *fds, size_t fd_count, int wait);
/// Reads the peer's credentials (SO_PEERCRED). getsockopt returns a struct ucred, which needs _GNU_SOURCE.
int tlx_peer_credentials(int fd, tlx_credentials *credentials);
/// Reads the supplementary groups of the peer (SO_PEERGROUPS). Returns their number. If it exceeds `capacity`, call the
/// function again with a larger array.
int tlx_peer_groups(int fd, uint32_t *groups, size_t capacity);
/// Binds a socket to a Unix address, because in Swift the path in struct sockaddr_un is a tuple of 108 characters. A
/// leading '@' stands for an abstract name.
int tlx_unix_bind(int fd, const char *path, size_t length);
int tlx_unix_connect(int fd, const char *path, size_t length);
/// The value of O_PATH, which needs _GNU_SOURCE.
extern const int tlx_o_path;
/// Opens a path with O_PATH by openat2(2), which has no wrapper in libc. Follows a final symlink if `follow` is 1. Uses
/// only what the kernel has cached: fails with EAGAIN if it would need a disk, a server, or an update of a symlink's
/// access time.
int tlx_open_path_cached(const char *path, int follow);
/// Creates a Unix socket, because SOCK_STREAM and its flags are an enum in Swift's Glibc. Kind: 0 stream, 1 datagram, 2
/// seqpacket.
int tlx_unix_socket(int kind, int non_blocking);
int tlx_unix_pair(int kind, int fds[2]);
/// Calls accept4(2), which needs _GNU_SOURCE.
int tlx_accept(int fd);
/// Create non-blocking TCP connections and listening sockets, for readiness checks and socket activation. Addresses
/// must be numeric, because names are not resolved (no getaddrinfo).
int tlx_tcp_connect(const char *address, uint16_t port);
int tlx_tcp_listen(const char *address, uint16_t port, int backlog, int reuse_port);
int tlx_socket_error(int fd);
int tlx_tcp_port(int fd);
/// One end of a TCP connection: an address (IPv4 as ::ffff:a.b.c.d) and a port, both in host byte order. Defined in C,
/// because Swift does not import the macros and structures of socket diagnostics.
typedef struct {
    uint64_t high, low;
    uint16_t port;
} tlx_tcp_end;
typedef struct {
    uint32_t inode;
    /// For ESTABLISHED, milliseconds since data last moved. For TIME_WAIT, milliseconds until the state expires.
    /// UINT32_MAX if the kernel does not report it.
    uint32_t milliseconds;
    tlx_tcp_end local, remote;
    /// The TCP state: one of the constants tlx_tcp_….
    uint8_t state;
    /// For LISTEN on IPv6: whether the socket accepts no IPv4 connections.
    uint8_t is_v6_only;
} tlx_tcp_socket;
enum { tlx_tcp_established = 1, tlx_tcp_time_wait = 6, tlx_tcp_listening = 10 };
int tlx_diagnostics_socket(void);
/// Opens a socket for socket diagnostics, like tlx_diagnostics_socket, but in the network namespace of the process
/// `pidfd`. A helper thread enters that namespace, opens the socket and ends. So the calling thread stays in its own
/// namespace. Returns -1 with EPERM if this process may not enter the namespace, EINVAL before Linux 5.8, ESRCH if the
/// process has ended.
int tlx_diagnostics_socket_of(int pidfd);
/// Opens a netlink socket that becomes readable when a route of this network namespace was added or removed.
int tlx_route_socket(void);
/// Reads the queued messages about routes. Returns 1 if a route to other machines was added or messages were lost,
/// otherwise 0.
int tlx_route_news(int fd);
/// Opens an rtnetlink socket that becomes readable when a network interface is added, removed or changed.
int tlx_link_socket(void);
/// Reads the queued messages about network interfaces. Returns 1 if an interface may have changed, otherwise 0.
int tlx_link_news(int fd);
/// tlx_tcp_ask asks the kernel for the TCP sockets of this network namespace with this IP version (4 or 6) and these
/// states (a set of 1 << tlx_tcp_…). tlx_tcp_answer then reads the answer in parts. It returns how many sockets it has
/// written to `to`, which must have room for tlx_tcp_piece sockets, and sets *is_last after the last part.
int tlx_tcp_ask(int netlink, int version, uint32_t states);
ssize_t tlx_tcp_answer(int netlink, tlx_tcp_socket *to, int *is_last);
enum { tlx_tcp_piece = 512 };

/// Finds the user at the other end of a TCP connection. Returns 1 and sets *user if a process of that user has accepted
/// the connection. Returns 0 if the other end is on another machine. Fails with ENOENT if the other end is on this
/// machine but the user is unknown. This is so if the connection is not accepted yet or is already closed, or if the
/// kernel does not report the user.
int tlx_tcp_peer_user(int fd, uint32_t *user);

// Sockets that apps inherit (listening.c).
enum { tlx_bind_ipv4, tlx_bind_ipv6, tlx_bind_vsock, tlx_bind_unix };
enum { tlx_stage_make, tlx_stage_option, tlx_stage_bind };
enum {
    tlx_option_keep_alive,
    tlx_option_no_delay,
    tlx_option_defer_accept,
    tlx_option_broadcast,
    tlx_option_pass_credentials,
    tlx_option_packet_info,
    tlx_option_priority,
    tlx_option_receive_buffer,
    tlx_option_send_buffer,
};
typedef struct {
    int family;
    int kind;  // see tlx_unix_socket
    const char *address;
    const char *interface;  // for link-local addresses
    uint32_t port;
    uint32_t cid;
    int ipv6_only;  // -1: the system's default
    int reuse_port;
    int free_bind;
    int transparent;
    const char *device;
} tlx_bind_plan;
/// Creates and binds a socket, because Swift cannot import sockaddr_vm and some socket options. On failure, *stage is
/// the step that failed.
int tlx_bound_socket(const tlx_bind_plan *plan, int *stage);
/// Duplicates a descriptor of another process (pidfd_getfd) if it is a socket that is bound to the address in `plan`.
/// Otherwise fails with ENOENT. For Unix sockets, the address is the path, or @ and the name.
int tlx_copy_bound(int pidfd, int fd, const tlx_bind_plan *plan);
int tlx_set_socket_option(int fd, int option, int value);
/// Sets the mode of the file that is created when the Unix socket is bound. The umask removes further bits from it.
int tlx_socket_inode_mode(int fd, unsigned int mode);
/// Sets owner and group of an open file; ~0 leaves a value unchanged. Unlike fchown(2), it accepts a descriptor opened
/// with O_PATH.
int tlx_set_owner(int fd, uint32_t user, uint32_t group);
/// Makes this thread access files with the rights of this user and these supplementary groups (setfsuid(2)), until
/// tlx_act_as_before is called. Fails with EPERM, without any change, if that is not permitted.
int tlx_act_as(uint32_t user, uint32_t group, const uint32_t *groups, size_t count);
void tlx_act_as_before(void);
/// While tlx_act_as is in effect, 1 switches to the process's own rights, and 0 back to those of the other user. At
/// other times, does nothing.
void tlx_act_as_oneself(int on);
/// With 1, makes the socket drop all packets by a filter (SO_ATTACH_FILTER). With 0, removes the filter.
int tlx_hold_back(int fd, int on);
/// Reads how many connections wait in a listening socket's backlog, and the limit of the backlog.
int tlx_tcp_backlog(int fd, uint32_t *waiting, uint32_t *most);
int tlx_unix_backlog(int netlink, uint32_t inode, uint32_t *waiting, uint32_t *most);
/// Reads the device, and the lower 32 bits of the inode number, of the file that a Unix socket was bound to. `inode` is
/// the socket's own inode number. Fails with ENODATA if the socket has no file.
int tlx_unix_file(int netlink, uint32_t inode, uint64_t *device, uint32_t *file);
/// Reads the state of a receive buffer: bytes used, its size in bytes, and how many datagrams were dropped.
int tlx_receive_memory(int fd, uint32_t *used, uint32_t *most, uint32_t *dropped);

// Sockets of other processes (foreign.c).
/// Duplicates another process's descriptor, close-on-exec. Older libcs have no wrapper for pidfd_getfd.
int tlx_pidfd_getfd(int pidfd, int fd);
/// The size of an address as text. The type and the addresses of a socket are read in C, because that needs macros,
/// unions and casts that Swift lacks.
enum { tlx_address_text = 112 };
enum { tlx_family_other, tlx_family_internet, tlx_family_unix, tlx_family_vsock };
typedef struct {
    /// The address family: one of the constants tlx_family_….
    uint8_t family;
    /// The socket type: 0 stream, 1 datagram, 2 seqpacket, 3 other.
    uint8_t type;
    uint8_t listens, is_connected;
    /// Whether the socket belongs to a network namespace other than this process's; 0 if the kernel does not report
    /// that (before Linux 5.14).
    uint8_t is_elsewhere;
    /// A key for the address to which the socket is bound: its port, or a number derived from its name; 0 if unbound. A
    /// listening socket and the connections accepted from it have the same key.
    uint64_t place;
    /// The socket's own address and the peer's address, for display; empty if there is none.
    char local[tlx_address_text], remote[tlx_address_text];
} tlx_socket_facts;
int tlx_socket_facts_of(int fd, tlx_socket_facts *to);
/// The key (`place`) of Unix sockets with this name. An abstract name begins with a zero byte.
uint64_t tlx_place_of_name(const char *name, size_t length);
typedef struct {
    /// Bytes that were received but not read, and bytes that were written but not acknowledged.
    uint32_t unread, unsent;
    /// Milliseconds since data last moved; UINT32_MAX if the kernel does not report it.
    uint32_t milliseconds;
    /// Milliseconds since data was last received; UINT32_MAX if none was received, and before Linux 4.19.
    uint32_t received;
    /// Milliseconds since data was last received, if this end has written nothing since. Otherwise, and before Linux
    /// 4.19, UINT32_MAX.
    uint32_t unanswered;
    /// Milliseconds since data was last received, if this end wrote data within the same tick of the kernel's clock, so
    /// that the order of the two is unknown. Otherwise UINT32_MAX.
    uint32_t tied;
} tlx_socket_traffic;
int tlx_socket_traffic_of(int fd, tlx_socket_traffic *to);
/// The queue and state of a socket in this network namespace, read by socket diagnostics. tlx_queue_ask asks for one
/// kind of sockets; tlx_queue_answer then reads the answer in parts.
typedef struct {
    uint32_t inode;
    /// For a listening socket, the number of connections in its accept queue. For other sockets, the number of unread
    /// bytes.
    uint32_t unread;
    uint64_t place;
    /// The state: one of the constants tlx_tcp_…. A connected datagram socket has the state tlx_tcp_established.
    uint8_t state;
    uint8_t family, type;
    /// Whether a write would block, because the send buffer is full.
    uint8_t is_full;
    /// The number by which socket diagnostics identify a socket during this boot; 0 for a Unix socket.
    uint64_t cookie;
    /// For a Unix socket: the inode number of the socket at the other end, 0 if that is closed; and the file at its
    /// path, as a number from the device and the inode number, 0 if it has none. An accepted connection has the file
    /// of its listening socket.
    uint32_t peer;
    uint64_t file;
    /// The traffic of a connection. Not set for a listening socket.
    tlx_socket_traffic traffic;
} tlx_socket_queue;
enum { tlx_tcp_close_wait = 8 };
enum { tlx_queue_tcp4, tlx_queue_tcp6, tlx_queue_udp4, tlx_queue_udp6, tlx_queue_unix };
enum { tlx_queue_piece = 1024 };
int tlx_queue_ask(int netlink, int kind);
ssize_t tlx_queue_answer(int netlink, int kind, tlx_socket_queue *to, int *is_last);

/// Call splice(2) and tee(2), which need _GNU_SOURCE. They never block here. For a pipe, the offset is NULL. For a
/// file, the offset is read and then advanced.
ssize_t tlx_splice(int in, int64_t *in_offset, int out, int64_t *out_offset, size_t size);
ssize_t tlx_tee(int in, int out, size_t size);
/// Wrap F_GETPIPE_SZ, F_SETPIPE_SZ and FIONREAD, which Swift's Glibc does not import.
int tlx_pipe_size(int fd);
int tlx_set_pipe_size(int fd, int size);
int tlx_readable_bytes(int fd);
/// Calls pipe2(2), which needs _GNU_SOURCE. The pipe is close-on-exec, and non-blocking on request.
int tlx_pipe(int fds[2], int nonblocking);

/// Replaces the pages of a library (dlopen(3)) by copies, so that the library no longer changes when its file does. If
/// that fails, because executable copies are forbidden, the rest of the pages stay those of the file.
int tlx_detach_library(void *handle);

/// Wrap the W… macros for a wait status, which Swift's Glibc does not import.
int tlx_wifexited(int status);
int tlx_wexitstatus(int status);
int tlx_wifsignaled(int status);
int tlx_wtermsig(int status);
int tlx_wcoredump(int status);

/// Creates a timerfd that becomes readable when the clock is set, and then must be armed again (timerfd_create(2)).
/// TFD_TIMER_CANCEL_ON_SET needs _GNU_SOURCE.
int tlx_clock_watch(void);
int tlx_clock_watch_arm(int fd);
/// Wrap timerfd on CLOCK_MONOTONIC, because Swift's Glibc lacks its header. The time is absolute, in nanoseconds; 0
/// disarms the timer.
int tlx_timerfd(void);
int tlx_timerfd_set(int fd, int64_t nanoseconds);
/// Creates a non-blocking eventfd, because Swift's Glibc lacks its header.
int tlx_eventfd(void);

/// Wraps epoll, because Swift's Glibc lacks its header and Swift cannot import struct epoll_event, which is packed.
typedef struct {
    uint32_t events;
    uint64_t data;
} tlx_epoll_event;
int tlx_epoll_create(void);
/// Calls epoll_ctl(2). The operation is 1 to add, 2 to delete, 3 to modify.
int tlx_epoll_ctl(int epoll, int operation, int fd, uint32_t events, uint64_t data);
int tlx_epoll_wait(int epoll, tlx_epoll_event *events, int capacity, int timeout_ms);
extern const uint32_t tlx_epollin, tlx_epollout, tlx_epollhup, tlx_epollrdhup, tlx_epollerr, tlx_epollet, tlx_epollpri;

/// Call ioprio_get(2) and ioprio_set(2), which have no wrapper in libc. `thread` is the id of a thread.
int tlx_io_priority(int thread);
int tlx_set_io_priority(int thread, int priority);
/// Calls getxattr(2), which Swift's Glibc lacks. Reads at most `size` bytes and returns the length, or -1.
long tlx_attribute(const char *path, const char *name, void *value, unsigned long size);
/// Call listxattr(2) and setxattr(2), which Swift's Glibc lacks. The first returns the length of all names together,
/// each with its NUL, or -1.
long tlx_attribute_names(const char *path, char *names, unsigned long size);
int tlx_set_attribute(const char *path, const char *name, const void *value, unsigned long size);
/// Calls syncfs(2), which needs _GNU_SOURCE.
int tlx_synchronise_filesystem(int fd);
/// Calls flock(2), which Swift cannot call, because a struct has the same name. Kind: 0 unlock, 1 shared, 2 exclusive.
/// Never blocks.
int tlx_flock(int fd, int kind);
/// Calls prctl(2), which Swift cannot call, because it is variadic.
int tlx_prctl(int option, unsigned long argument);
/// Blocks or unblocks one signal in this thread. In C, because the functions for sigset_t are inline functions with
/// statement expressions, which Swift cannot import.
int tlx_signal_block(int signo, int block);
/// Sets a signal's action to SIG_DFL (0) or SIG_IGN (1). In C, because Swift cannot set the handler in struct
/// sigaction, which is in an anonymous union.
int tlx_signal_disposition(int signo, int ignore);
/// Makes each arrival of a signal add 1 to an eventfd. In C, because a signal handler must be async-signal-safe. All
/// signals share one eventfd.
int tlx_signal_count(int signo, int eventfd);
/// The values of SIGRTMIN and SIGRTMAX, which are macros that call functions, so that Swift cannot import them.
int tlx_sigrtmin(void);
int tlx_sigrtmax(void);
/// The major and minor number of a device. In C, because major and minor are macros that Swift cannot import.
unsigned int tlx_major(uint64_t device);
unsigned int tlx_minor(uint64_t device);
/// Call getrlimit(2) and setrlimit(2), whose parameter `resource` is an enum in Swift's Glibc.
int tlx_get_limit(int resource, uint64_t *soft, uint64_t *hard);
int tlx_set_limit(int resource, uint64_t soft, uint64_t hard);
/// Whether two descriptors refer to the same open file: 1, 0, or -1 after an error. Calls kcmp(2), which has no wrapper
/// in libc.
int tlx_same_file(int one, int other);
/// Stores a value with release ordering, so that a process that reads the value, even after this process has ended,
/// also sees all earlier writes.
void tlx_store_release(uint32_t *to, uint32_t value);
/// Whether a descriptor is on a FUSE filesystem: 1, 0, or -1 after an error. The server of such a filesystem may report
/// any owner for a file.
int tlx_is_made_up(int fd);
/// Whether a path is on tmpfs or ramfs: 1, 0, or -1 after an error. In C, because in Swift the name statfs is ambiguous
/// (a function and a struct).
int tlx_is_memory(const char *path);
/// Starts writeback of a range of a file without waiting for it, by sync_file_range(2), which needs _GNU_SOURCE.
void tlx_begin_writing(int fd, off_t offset, off_t count);
/// Calls memrchr(3), which needs _GNU_SOURCE.
const void *tlx_memrchr(const void *bytes, int byte, size_t count);
/// Sets options of the heap by mallopt(3), which Swift's Glibc lacks. All threads share one heap, and large blocks are
/// always mapped separately. Both make it easier to return freed memory to the kernel.
void tlx_heap_settings(void);
/// With 1, makes the heap keep up to 4 MiB of freed memory. With 0, reverts this.
void tlx_heap_keep(int keeps);
/// Returns free heap pages to the kernel, and drops unmodified file pages of the program and its libraries. The kernel
/// reads dropped pages from the page cache when they are used again. No other thread may run during the call.
/// dl_iterate_phdr(3) needs _GNU_SOURCE.
void tlx_release_pages(void);
/// Drops the pages of code and constants of the program and its libraries, locked ones too, and waits until `fd` is
/// readable or a signal arrives. In one function of C, because each function that runs in between brings its own pages
/// back, with up to 15 around them.
void tlx_wait_released(int fd);
/// Locks all present pages in memory, and later pages once they are touched. Fails with EPERM if the process may not
/// lock memory without a limit, because mappings beyond a limit would fail. In C, because the flags of mlockall(2) are
/// an enum in Swift's Glibc, and MCL_ONFAULT needs _GNU_SOURCE.
int tlx_lock_memory(void);
int tlx_unlock_memory(void);
/// Touches `size` bytes of free heap. In C, because Swift's compiler might remove such a loop.
void tlx_touch_heap(size_t size);
/// Calls sched_getcpu(3), which needs _GNU_SOURCE.
int tlx_processor(void);
/// Pins a process to one processor by sched_setaffinity(2). In C, because Swift cannot import the macros for cpu_set_t.
int tlx_bind(pid_t pid, int processor);
/// Turns all of a file's content into zeros that use no memory, and keeps the file's size. The flags of fallocate(2)
/// need _GNU_SOURCE.
int tlx_punch(int fd);
/// Renames a file by renameat2(2) with RENAME_NOREPLACE, which needs _GNU_SOURCE. Fails with EEXIST if the target
/// exists.
int tlx_rename_exclusive(const char *from, const char *to);
/// Exchanges two names atomically, by renameat2(2) with RENAME_EXCHANGE, which needs _GNU_SOURCE.
int tlx_rename_exchange(const char *one, const char *other);
/// Opens a name in a folder by openat2(2), which has no wrapper in libc. Does not follow a symlink. With `same_device`,
/// does not enter a mount point either, because a mounted filesystem could block. Before Linux 5.6, or if openat2 is
/// forbidden, it also opens mount points.
int tlx_open_beneath(int folder, const char *name, int flags, int same_device);
/// Wrap the ioctls of fs-verity, because Swift cannot call the variadic ioctl(2). tlx_verity_enable makes a file that
/// is open for reading immutable, with SHA-256 over blocks of 4 KiB. tlx_verity_digest writes the file's digest of 32
/// bytes. Both fail with ENOTTY or EOPNOTSUPP if the filesystem does not support fs-verity. tlx_verity_digest fails
/// with ENODATA for a file without fs-verity, or with another kind of digest.
int tlx_verity_enable(int fd);
int tlx_verity_digest(int fd, uint8_t *digest);
/// Wrap ioctls of fscrypt, because Swift cannot call the variadic ioctl(2). `fd` is a folder. tlx_fscrypt_policy writes
/// the 16 bytes that identify the key of an encrypted folder. It fails with ENODATA if the folder is not encrypted but
/// could be, and with EOPNOTSUPP or ENOTTY if the filesystem does not support encryption. tlx_fscrypt_protect encrypts
/// an empty folder.
int tlx_fscrypt_policy(int fd, uint8_t *identifier);
int tlx_fscrypt_protect(int fd, const uint8_t *identifier);
/// Manage the keys of fscrypt. tlx_fscrypt_add gives the kernel a key of 64 bytes, and writes the key's identifier.
/// tlx_fscrypt_remove removes a key, and returns flags (1: files are still in use, 2: other users have also added the
/// key) or -1. tlx_fscrypt_status returns a key's state: 1 absent, 2 present, 3 removed but still in use, or -1.
int tlx_fscrypt_add(int fd, const uint8_t *key, uint8_t *identifier);
int tlx_fscrypt_remove(int fd, const uint8_t *identifier, int of_all_users);
int tlx_fscrypt_status(int fd, const uint8_t *identifier);
/// Reads the device and the inode number of a file. Uses only cached values and asks no server (statx with
/// AT_STATX_DONT_SYNC).
int tlx_identity(int folder, const char *name, uint64_t *device, uint64_t *inode);
/// Compares a table of two threads by kcmp(2), which has no wrapper in libc. Kind: 2 descriptors, 3 working and root
/// directory. Returns 0 if the threads share the table, a positive number if not, or -1.
int tlx_compare_tasks(int first, int second, int kind);
/// The number of a filesystem's type (statfs(2), f_type), or -1.
long tlx_filesystem(const char *path);
/// Opens a socket on which the kernel sends only its audit records about Landlock. Needs CAP_AUDIT_READ.
int tlx_audit_listen(void);
/// Reads the next record from the socket of tlx_audit_listen: its text, and its type, which is set to 0 if the sender
/// was not the kernel. Returns the length of the text in bytes. Fails with EAGAIN if no record is queued, and with
/// ENOBUFS if records were lost.
ssize_t tlx_audit_next(int fd, uint16_t *type, char *text, size_t size);
/// Whether audit is enabled on this machine: 1 or 0, or -1 after an error. Waits at most `patience` milliseconds for
/// the kernel. Needs CAP_AUDIT_CONTROL.
int tlx_audit_enabled(int patience);
/// The version of the kernel's Landlock ABI, by landlock_create_ruleset(2), which has no wrapper in libc.
long tlx_landlock_version(void);
/// Creates a Landlock ruleset that restricts these rights, and returns its descriptor.
int tlx_landlock_ruleset(uint64_t files, uint64_t network, uint64_t scoped);
/// Add a rule to a Landlock ruleset. The rule allows rights on an open file or folder, or on a TCP port.
int tlx_landlock_allow(int ruleset, int fd, uint64_t rights);
int tlx_landlock_allow_port(int ruleset, uint16_t port, uint64_t rights);
/// Restricts this process by Landlock. `paths` has three parts. Below the paths before index `writable`, the process
/// may only read. Below the paths from there to index `executable`, it has all access except to special files and
/// programs. Below the rest, it may read and execute. Missing paths are skipped. Returns 1 if the process is
/// restricted, 0 if the kernel has no Landlock.
int tlx_confine(const char *const *paths, size_t count, size_t writable, size_t executable, int abstract);
/// Renames a file unless the target exists (renameat2(2) needs _GNU_SOURCE). Fails with EEXIST if the target exists. On
/// a filesystem that does not support this, uses link and unlink.
int tlx_rename_absent(int from_folder, const char *from, int to_folder, const char *to);

/// Calls wcwidth(3), which needs _XOPEN_SOURCE. Always uses the locale C.UTF-8 instead of the process's own. Returns -1
/// for characters that are not printable.
int tlx_columns(uint32_t scalar);
/// Adopts the environment's locale for character types. Returns 1 if its encoding is UTF-8. In C, because CODESET of
/// nl_langinfo(3) is an enum in Swift's Glibc.
int tlx_adopt_locale(void);
/// Reads the size of a terminal. In C, because ioctl(2) is variadic. Fails with ENOTTY if the size is unknown.
int tlx_terminal_size(int fd, int *rows, int *columns);
/// Turns a terminal's echo, and the signals that its keys send, off (0) or on again (1).
int tlx_set_echo(int fd, int on);
/// Wrap signalfd(2), which Swift's Glibc lacks. tlx_terminal_signals blocks SIGTERM and the signals that a terminal
/// sends, and returns a descriptor for them. tlx_next_signal reads one signal. It returns the signal's number, or 0
/// after an incomplete read, or fails with EAGAIN.
int tlx_terminal_signals(void);
int tlx_next_signal(int fd);
/// Performs a signal's default action on this process, even if the signal is blocked. In C, because the handler in
/// struct sigaction is in a union.
void tlx_take_signal(int signo);

#endif
