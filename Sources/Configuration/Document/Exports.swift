// SPDX-License-Identifier: Apache-2.0

// Parts of the configuration's vocabulary that stand where small programs have them too, without all of this module.

@_exported public import enum TorporAPI.ControlSocket
@_exported public import struct TorporAPI.DefaultPaths
@_exported public import enum WireText.Quantity
@_exported public import struct WireText.QuantityError
