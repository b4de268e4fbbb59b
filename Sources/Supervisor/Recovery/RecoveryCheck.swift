// SPDX-License-Identifier: Apache-2.0

import Configuration
import Lifecycle
import Recovery

/// Checks before an upgrade that the new torpord can read the records of the apps.
enum RecoveryCheck {
    static func refusal(of file: RecoveryFile, _ configuration: TorporConfiguration) -> String? {
        let all = configuration.apps + configuration.templates
        let rules = Dictionary(all.map { ($0.name, $0.rules) }, uniquingKeysWith: { $1 })
        for entry in file.entries {
            // Read a copy of each record, because the running torpord continues to write to the file.
            let template = AppName.sceneParts(entry.name)?.template
            guard let rules = rules[entry.name] ?? template.flatMap({ rules[$0] }),
                let record = file.snapshot(entry.slot)
            else { continue }
            let isReadable = record.withUnsafeBytes { bytes in
                var reader = RecordReader(bytes)
                return AppMachine(rules: rules, from: &reader) != nil
            }
            if !isReadable { return "it cannot read the record of \(entry.name)" }
        }
        return nil
    }
}
