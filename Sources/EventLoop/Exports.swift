// SPDX-License-Identifier: Apache-2.0

// IOEvents is part of this module's interface and is defined in Linux.
@_exported public import struct Linux.IOEvents
