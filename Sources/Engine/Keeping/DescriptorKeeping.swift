// SPDX-License-Identifier: Apache-2.0

/// Gives descriptors to the keeper, where the next torpord finds them, under names of ``DescriptorName``.
package protocol DescriptorKeeping: AnyObject {
    /// Gives a copy of one into keeping, in place of what was there under that name.
    func hold(_ name: String, _ descriptor: Int32)
    /// Gives copies of several into keeping: beside those that are there under that name, or in their place.
    func hold(_ name: String, _ descriptors: [Int32], replacing: Bool)
    /// What is there under that name is not needed any more.
    func release(_ name: String)
    /// What an earlier torpord left there.
    var inheritance: InheritedDescriptors { get }
    /// Whether a torpord ran under this keeper before.
    var isSuccessor: Bool { get }
}
