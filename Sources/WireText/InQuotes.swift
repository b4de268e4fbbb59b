// SPDX-License-Identifier: Apache-2.0

extension String {
    /// The text in quotes, cut to 80 characters. Control characters are escaped, so that a terminal does not interpret
    /// them.
    public var inQuotes: String {
        var result = "\""
        for scalar in unicodeScalars.prefix(80) {
            switch scalar {
            case "\"", "\\": result += "\\" + String(scalar)
            case "\n": result += "\\n"
            case "\t": result += "\\t"
            case _ where scalar.properties.generalCategory == .control:
                result += "\\u{\(String(scalar.value, radix: 16))}"
            default: result.unicodeScalars.append(scalar)
            }
        }
        return result + (unicodeScalars.count > 80 ? "…\"" : "\"")
    }
}
