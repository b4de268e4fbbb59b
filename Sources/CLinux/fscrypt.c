/* SPDX-License-Identifier: Apache-2.0 */

#define _GNU_SOURCE
#include "clinux.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

// The structures of linux/fscrypt.h, which libc's headers of Debian 11 define only in part.
struct policy {
    uint8_t version, contents, names, flags, reserved[4], identifier[16];
};
struct specifier {
    uint32_t type, reserved;
    uint8_t identifier[32];
};

static struct specifier specify(const uint8_t *identifier)
{
    struct specifier key = {2, 0, {0}};  // FSCRYPT_KEY_SPEC_TYPE_IDENTIFIER
    if (identifier != NULL)
        memcpy(key.identifier, identifier, 16);
    return key;
}

int tlx_fscrypt_policy(int fd, uint8_t *identifier)
{
    struct {
        uint64_t size;
        struct policy policy;
    } found = {sizeof found.policy, {0}};
    if (ioctl(fd, 0xc0096616, &found) < 0)  // FS_IOC_GET_ENCRYPTION_POLICY_EX
        return -1;
    if (found.policy.version != 2) {
        errno = EINVAL;
        return -1;
    }
    memcpy(identifier, found.policy.identifier, 16);
    return 0;
}

int tlx_fscrypt_protect(int fd, const uint8_t *identifier)
{
    // AES-256-XTS for contents and AES-256-CTS for names padded to 32 bytes, as the kernel's documentation recommends.
    struct policy policy = {2, 1, 4, 3, {0}, {0}};
    memcpy(policy.identifier, identifier, 16);
    return ioctl(fd, 0x800c6613, &policy);  // FS_IOC_SET_ENCRYPTION_POLICY
}

int tlx_fscrypt_add(int fd, const uint8_t *key, uint8_t *identifier)
{
    struct {
        struct specifier key;
        uint32_t size, id, reserved[8];
        uint8_t raw[64];
    } added = {specify(NULL), 64, 0, {0}, {0}};
    memcpy(added.raw, key, 64);
    int result = ioctl(fd, 0xc0506617, &added);  // FS_IOC_ADD_ENCRYPTION_KEY
    int error = errno;
    memcpy(identifier, added.key.identifier, 16);
    explicit_bzero(&added, sizeof added);
    errno = error;
    return result;
}

int tlx_fscrypt_remove(int fd, const uint8_t *identifier, int of_all_users)
{
    struct {
        struct specifier key;
        uint32_t flags, reserved[5];
    } removed = {specify(identifier), 0, {0}};
    // The numbers of FS_IOC_REMOVE_ENCRYPTION_KEY_ALL_USERS and FS_IOC_REMOVE_ENCRYPTION_KEY, in this order.
    if (ioctl(fd, of_all_users ? 0xc0406619 : 0xc0406618, &removed) < 0)
        return -1;
    return (int)removed.flags;
}

int tlx_fscrypt_status(int fd, const uint8_t *identifier)
{
    struct {
        struct specifier key;
        uint32_t reserved[6], status, flags, users, more[13];
    } found = {specify(identifier), {0}, 0, 0, 0, {0}};
    if (ioctl(fd, 0xc080661a, &found) < 0)  // FS_IOC_GET_ENCRYPTION_KEY_STATUS
        return -1;
    return (int)found.status;
}

int tlx_identity(int folder, const char *name, uint64_t *device, uint64_t *inode)
{
    struct statx found;
    int flags = AT_STATX_DONT_SYNC | AT_NO_AUTOMOUNT | (*name == 0 ? AT_EMPTY_PATH : 0);
    if (statx(folder, name, flags, STATX_INO, &found) < 0)
        return -1;
    *device = makedev(found.stx_dev_major, found.stx_dev_minor);
    *inode = found.stx_ino;
    return 0;
}

long tlx_filesystem(const char *path)
{
    struct statfs found;
    return statfs(path, &found) < 0 ? -1 : (long)found.f_type;
}

int tlx_compare_tasks(int first, int second, int kind)
{
    return (int)syscall(SYS_kcmp, first, second, kind, 0UL, 0UL);
}
