// SPDX-License-Identifier: Apache-2.0

@testable import TorporPolicyKit

/// A view as a supervisor makes one, of an earlier or later version if the sizes say so.
final class FakeView {
    let pointer: UnsafeMutablePointer<torpor_policy_view>
    let system: UnsafeMutablePointer<torpor_policy_system>
    private let apps: UnsafeMutableRawPointer
    private let strings: UnsafeMutablePointer<CChar>
    private let stride: Int
    private var stringCount = 1
    private static let stringCapacity = 4096

    /// - Parameters:
    ///   - places: how many there are; apps are put into them by ``put(_:_:tags:_:)``.
    ///   - stride: bytes from one app to the next.
    init(places: Int, stride: Int = MemoryLayout<torpor_policy_app>.stride) {
        self.stride = stride
        pointer = .allocate(capacity: 1)
        system = .allocate(capacity: 1)
        apps = .allocate(byteCount: max(1, places) * stride, alignment: 8)
        apps.initializeMemory(as: UInt8.self, repeating: 0, count: max(1, places) * stride)
        strings = .allocate(capacity: Self.stringCapacity)
        strings.initialize(repeating: 0, count: Self.stringCapacity)
        system.initialize(to: torpor_policy_system())
        system.pointee.size = UInt32(MemoryLayout<torpor_policy_system>.size)
        system.pointee.now = 1_000_000_000
        pointer.initialize(
            to: torpor_policy_view(
                size: UInt32(MemoryLayout<torpor_policy_view>.size),
                app_count: UInt32(places),
                app_size: UInt32(stride),
                string_size: 1,
                system: UnsafePointer(system),
                apps: UnsafeRawPointer(apps),
                strings: UnsafePointer(strings)
            )
        )
    }

    deinit {
        apps.deallocate()
        strings.deallocate()
        system.deallocate()
        pointer.deallocate()
    }

    var view: View { View(pointer)! }

    /// - Parameter size: how many bytes of the struct are there.
    func put(
        _ place: Int,
        _ name: String,
        tags: [String] = [],
        size: Int = MemoryLayout<torpor_policy_app>.size,
        _ change: (inout torpor_policy_app) -> Void = { _ in }
    ) {
        var app = torpor_policy_app()
        app.size = UInt32(size)
        app.flags = 1
        app.name = add(name)
        app.tags = UInt32(stringCount)
        for tag in tags { _ = add(tag) }
        app.tag_count = UInt32(tags.count)
        app.state_since = (.min, .min, .min, .min, .min)
        app.last_use = .min
        app.measured_at = .min
        change(&app)
        withUnsafeBytes(of: app) { bytes in
            let start = apps + place * stride
            start.copyMemory(from: bytes.baseAddress!, byteCount: min(size, stride, bytes.count))
            // What lies behind belongs to nobody.
            for byte in min(size, bytes.count)..<max(stride, size) where byte < stride {
                start.storeBytes(of: 0xAA, toByteOffset: byte, as: UInt8.self)
            }
        }
    }

    private func add(_ text: String) -> UInt32 {
        let start = stringCount
        for byte in text.utf8 {
            strings[stringCount] = CChar(bitPattern: byte)
            stringCount += 1
        }
        strings[stringCount] = 0
        stringCount += 1
        pointer.pointee.string_size = UInt32(stringCount)
        return UInt32(start)
    }

    func app(_ place: Int) -> App { view[UInt32(place)]! }
}

/// Options as the supervisor gives them.
final class FakeOptions {
    enum Value: ExpressibleByStringLiteral, ExpressibleByIntegerLiteral, ExpressibleByBooleanLiteral,
        ExpressibleByFloatLiteral
    {
        case string(String)
        case integer(Int64)
        case boolean(Bool)
        case number(Double)

        init(stringLiteral value: String) { self = .string(value) }
        init(integerLiteral value: Int64) { self = .integer(value) }
        init(booleanLiteral value: Bool) { self = .boolean(value) }
        init(floatLiteral value: Double) { self = .number(value) }
    }

    let pointer: UnsafeMutablePointer<torpor_policy_options>
    private let list: UnsafeMutablePointer<torpor_policy_option>
    private var texts: [UnsafeMutablePointer<CChar>] = []

    init(_ values: KeyValuePairs<String, Value>) {
        list = .allocate(capacity: max(1, values.count))
        pointer = .allocate(capacity: 1)
        for (index, (key, value)) in values.enumerated() {
            var option = torpor_policy_option()
            option.size = UInt32(MemoryLayout<torpor_policy_option>.size)
            option.key = constant(key)
            switch value {
            case .string(let text):
                option.type = TORPOR_OPTION_STRING.rawValue
                option.text = constant(text)
            case .integer(let integer):
                option.type = TORPOR_OPTION_INTEGER.rawValue
                (option.text, option.integer, option.number) = (constant("\(integer)"), integer, Double(integer))
            case .boolean(let boolean):
                option.type = TORPOR_OPTION_BOOLEAN.rawValue
                (option.text, option.integer) = (constant("\(boolean)"), boolean ? 1 : 0)
            case .number(let number):
                option.type = TORPOR_OPTION_NUMBER.rawValue
                (option.text, option.number) = (constant("\(number)"), number)
            }
            (list + index).initialize(to: option)
        }
        pointer.initialize(
            to: torpor_policy_options(
                size: UInt32(MemoryLayout<torpor_policy_options>.size),
                count: UInt32(values.count),
                option_size: UInt32(MemoryLayout<torpor_policy_option>.stride),
                reserved: 0,
                options: UnsafeRawPointer(list)
            )
        )
    }

    deinit {
        for text in texts { text.deallocate() }
        list.deallocate()
        pointer.deallocate()
    }

    var options: Options { Options(pointer) }

    private func constant(_ text: String) -> UnsafePointer<CChar> {
        let bytes = UnsafeMutablePointer<CChar>.allocate(capacity: text.utf8.count + 1)
        for (index, byte) in text.utf8.enumerated() { bytes[index] = CChar(bitPattern: byte) }
        bytes[text.utf8.count] = 0
        texts.append(bytes)
        return UnsafePointer(bytes)
    }
}
