// SPDX-License-Identifier: Apache-2.0

// IOEvents is part of this module's interface, although the module Linux defines it.
@_exported public import struct Linux.IOEvents
