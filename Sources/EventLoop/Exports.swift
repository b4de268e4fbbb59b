// SPDX-License-Identifier: Apache-2.0

// IOEvents, Duration's helpers and Clock are part of this module's interface, and live in Linux.
@_exported public import struct Linux.IOEvents
