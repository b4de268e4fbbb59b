// SPDX-License-Identifier: Apache-2.0

import Linux
import TorporAPI
import Varlink

/// The page that browsers get while an app starts. It needs no script and loads nothing.
enum HoldingDocument {
    /// A placeholder: torpor-holding replaces it by the seconds that the app has been starting for.
    static let seconds = "@SECONDS@"
    private static let largestPicture = 2 << 20

    /// Makes the page. The icon and the picture are `data:` URLs.
    static func page(title: String, icon: String?, picture: String?) -> [UInt8] {
        let name = escaped(title)
        let sign = icon.map { "<img class=\"icon\" src=\"\($0)\" alt=\"\">\n" } ?? ""
        let image = picture.map { "<img class=\"last\" src=\"\($0)\" alt=\"\">" } ?? ""
        let text = """
            <!doctype html>
            <html lang="en">
            <head>
            <meta charset="utf-8">
            <meta name="viewport" content="width=device-width, initial-scale=1">
            <meta name="robots" content="noindex">
            <title>\(name) is starting</title>
            <style>
            :root { color-scheme: light dark; }
            body { margin: 0; min-height: 100vh; display: grid; place-items: center; font: 1.1rem system-ui, sans-serif; }
            main { position: relative; padding: 2rem 3rem; border-radius: 1rem; background: Canvas; text-align: center; }
            .last { position: fixed; inset: 0; width: 100%; height: 100%; object-fit: cover; filter: blur(12px); }
            .icon { width: 4rem; height: 4rem; object-fit: contain; }
            p { opacity: .7; }
            </style>
            </head>
            <body>
            \(image)
            <main role="status">
            \(sign)<h1>\(name) is starting</h1>
            <p>It has been starting for \(seconds) s. This page continues by itself.</p>
            </main>
            </body>
            </html>

            """
        return Array(text.utf8)
    }

    /// The app's icon as a `data:` URL; nil if the icon's file type is unknown.
    static func icon(_ icon: AppIcon) -> String? {
        icon.mediaType.map { "data:\($0);base64,\(Base64.encode(icon.data))" }
    }

    /// A picture as a `data:` URL; nil if its file cannot be read or is too large.
    static func image(_ picture: (path: String, kind: String)) -> String? {
        guard let bytes = try? File.read(picture.path, limit: largestPicture + 1), bytes.count <= largestPicture else {
            return nil
        }
        return "data:image/\(picture.kind);base64,\(Base64.encode(bytes))"
    }

    private static func escaped(_ text: String) -> String {
        var result = ""
        for character in text.unicodeScalars {
            switch character {
            case "<": result += "&lt;"
            case ">": result += "&gt;"
            case "&": result += "&amp;"
            case "\"": result += "&quot;"
            case "@": result += "&#64;"
            default: result.unicodeScalars.append(character)
            }
        }
        return result
    }
}
