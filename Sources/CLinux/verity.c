/* SPDX-License-Identifier: Apache-2.0 */

#define _GNU_SOURCE
#include "clinux.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>

// The structures are those of linux/fsverity.h, which the libc headers of Debian 11 lack.
int tlx_verity_enable(int fd)
{
    struct {
        uint32_t version, algorithm, block, salt_size;
        uint64_t salt;
        uint32_t signature_size, reserved;
        uint64_t signature, more[11];
    } how = {1, 1, 4096, 0, 0, 0, 0, 0, {0}};
    return ioctl(fd, 0x40806685, &how);  // FS_IOC_ENABLE_VERITY
}

int tlx_verity_digest(int fd, uint8_t *digest)
{
    struct {
        uint16_t algorithm, size;
        uint8_t bytes[64];
    } measured = {0, sizeof measured.bytes, {0}};
    if (ioctl(fd, 0xc0046686, &measured) < 0)  // FS_IOC_MEASURE_VERITY
        return -1;
    if (measured.algorithm != 1 || measured.size != 32) {
        errno = ENODATA;
        return -1;
    }
    memcpy(digest, measured.bytes, 32);
    return 0;
}

int tlx_rename_exchange(const char *one, const char *other)
{
    return renameat2(AT_FDCWD, one, AT_FDCWD, other, RENAME_EXCHANGE);
}
