// SPDX-License-Identifier: Apache-2.0

/// Parses a number with up to two decimals, as in the kernel's averages (`12.34`), and returns it in hundredths, at
/// most UInt32.max. Nil for any other text.
func hundredths(_ text: Substring) -> UInt32? {
    let parts = text.utf8.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
    guard parts.count <= 2, let whole = digits(parts[0]), parts[0].count > 0 else { return nil }
    var rest: UInt64 = 0
    if parts.count == 2 {
        guard (1...2).contains(parts[1].count), let behind = digits(parts[1]) else { return nil }
        rest = parts[1].count == 1 ? behind * 10 : behind
    }
    let (product, overflow) = whole.multipliedReportingOverflow(by: 100)
    return overflow ? .max : UInt32(clamping: product.addingReportingOverflow(rest).partialValue)
}

private func digits(_ text: Substring.UTF8View) -> UInt64? {
    var value: UInt64 = 0
    for byte in text {
        let digit = byte &- UInt8(ascii: "0")
        guard digit < 10 else { return nil }
        let (product, overflow) = value.multipliedReportingOverflow(by: 10)
        value = overflow ? .max / 1000 : product &+ UInt64(digit)
    }
    return value
}
