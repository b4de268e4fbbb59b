// SPDX-License-Identifier: Apache-2.0

#include "ctoml.h"

// Limits how deep arrays and inline tables may nest. This limit times CTOML_KEY_PARTS is the depth of the deepest tree,
// which must fit on the stack when the tree is walked and destroyed recursively.
#define TOML_MAX_NESTED_VALUES 64
// Release builds have no unwind tables (packaging/link/ld.lld), so an exception would abort the program.
#define TOML_EXCEPTIONS 0
#include <toml++/toml.h>

#include <algorithm>
#include <cstdio>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

namespace {

// toml++ 3.3.0 bounds nested values but not the parts of a dotted key, each of which nests a table.
constexpr size_t key_parts_limit = 64;

struct document final : ctoml_document {
    std::deque<std::vector<ctoml_node>> nodes;
    std::deque<std::string> strings;

    document() : ctoml_document{} {}

    std::string_view keep(std::string text) {
        strings.push_back(std::move(text));
        return strings.back();
    }

    void fail(std::string message, uint32_t line, uint32_t column) {
        const std::string_view kept = keep(std::move(message));
        valid = 0;
        root = ctoml_node{};
        error = kept.data();
        error_length = kept.size();
        error_line = line;
        error_column = column;
    }
};

// Finds a key with too many parts. Knows just enough of TOML to distinguish a dot in a key from a dot in a string or
// comment.
bool has_deep_key(std::string_view text, uint32_t &line, uint32_t &column) {
    size_t dots = 0, line_start = 0;
    line = 1;
    for (size_t at = 0; at < text.size(); at++) {
        const char c = text[at];
        if (c == '\n') {
            line++;
            line_start = at + 1;
            dots = 0;
        } else if (c == '#') {
            while (at + 1 < text.size() && text[at + 1] != '\n') at++;
        } else if (c == '"' || c == '\'') {
            const bool is_long = text.substr(at, 3) == std::string_view(c == '"' ? "\"\"\"" : "'''");
            const size_t quotes = is_long ? 3 : 1;
            at += quotes;
            while (at < text.size()) {
                if (c == '"' && text[at] == '\\') {
                    if (at + 1 < text.size() && text[at + 1] == '\n') {
                        line++;
                        line_start = at + 2;
                    }
                    at += 2;
                    continue;
                }
                if (text[at] == '\n') {
                    if (!is_long) {  // An error that the parser will report.
                        at--;
                        break;
                    }
                    line++;
                    line_start = at + 1;
                }
                if (text[at] == c && (!is_long || (at + 2 < text.size() && text[at + 1] == c && text[at + 2] == c))) {
                    at += quotes - 1;
                    while (is_long && at + 1 < text.size() && text[at + 1] == c) at++;
                    break;
                }
                at++;
            }
        } else if (c == '.') {
            if (++dots >= key_parts_limit) {
                column = static_cast<uint32_t>(at - line_start + 1);
                return true;
            }
        } else if (c == '=' || c == ',' || c == '{' || c == '[') {
            dots = 0;
        }
    }
    return false;
}

std::string text_of(const toml::date &date) {
    char text[32];
    std::snprintf(text, sizeof text, "%04u-%02u-%02u", unsigned(date.year), unsigned(date.month), unsigned(date.day));
    return text;
}

std::string text_of(const toml::time &time) {
    char text[32];
    std::snprintf(text, sizeof text, "%02u:%02u:%02u", unsigned(time.hour), unsigned(time.minute), unsigned(time.second));
    std::string result = text;
    if (time.nanosecond != 0) {
        std::snprintf(text, sizeof text, ".%09u", unsigned(time.nanosecond));
        result += text;
        result.erase(result.find_last_not_of('0') + 1);
    }
    return result;
}

std::string text_of(const toml::date_time &moment) {
    std::string result = text_of(moment.date) + "T" + text_of(moment.time);
    if (!moment.offset) return result;
    const int minutes = moment.offset->minutes;
    if (minutes == 0) return result + "Z";
    char text[32];
    const unsigned distance = unsigned(minutes < 0 ? -minutes : minutes);
    std::snprintf(text, sizeof text, "%c%02u:%02u", minutes < 0 ? '-' : '+', distance / 60, distance % 60);
    return result + text;
}

void set_text(document &owner, ctoml_node &into, std::string text) {
    const std::string_view kept = owner.keep(std::move(text));
    into.text = kept.data();
    into.text_length = kept.size();
}

void fill(document &owner, ctoml_node &into, const toml::node &node) {
    into.line = node.source().begin.line;
    into.column = node.source().begin.column;
    switch (node.type()) {
    case toml::node_type::table: {
        const toml::table &table = *node.as_table();
        into.type = CTOML_TABLE;
        owner.nodes.emplace_back(table.size());
        std::vector<ctoml_node> &members = owner.nodes.back();
        size_t at = 0;
        for (auto &&[key, value] : table) {
            ctoml_node &member = members[at++];
            member = ctoml_node{};
            const std::string_view kept = owner.keep(std::string(key.str()));
            member.key = kept.data();
            member.key_length = kept.size();
            member.key_line = key.source().begin.line;
            member.key_column = key.source().begin.column;
            fill(owner, member, value);
        }
        std::stable_sort(members.begin(), members.end(), [](const ctoml_node &a, const ctoml_node &b) {
            return a.key_line != b.key_line ? a.key_line < b.key_line : a.key_column < b.key_column;
        });
        into.children = members.data();
        into.count = members.size();
        break;
    }
    case toml::node_type::array: {
        const toml::array &array = *node.as_array();
        into.type = CTOML_ARRAY;
        owner.nodes.emplace_back(array.size());
        std::vector<ctoml_node> &elements = owner.nodes.back();
        for (size_t at = 0; at < array.size(); at++) {
            elements[at] = ctoml_node{};
            fill(owner, elements[at], *array.get(at));
        }
        into.children = elements.data();
        into.count = elements.size();
        break;
    }
    case toml::node_type::string:
        into.type = CTOML_STRING;
        set_text(owner, into, node.as_string()->get());
        break;
    case toml::node_type::integer:
        into.type = CTOML_INTEGER;
        into.integer = node.as_integer()->get();
        break;
    case toml::node_type::floating_point:
        into.type = CTOML_FLOAT;
        into.real = node.as_floating_point()->get();
        break;
    case toml::node_type::boolean:
        into.type = CTOML_BOOLEAN;
        into.integer = node.as_boolean()->get() ? 1 : 0;
        break;
    case toml::node_type::date:
        into.type = CTOML_DATE;
        set_text(owner, into, text_of(node.as_date()->get()));
        break;
    case toml::node_type::time:
        into.type = CTOML_TIME;
        set_text(owner, into, text_of(node.as_time()->get()));
        break;
    case toml::node_type::date_time:
        into.type = node.as_date_time()->get().offset ? CTOML_DATE_TIME : CTOML_LOCAL_DATE_TIME;
        set_text(owner, into, text_of(node.as_date_time()->get()));
        break;
    case toml::node_type::none:
        break;
    }
}

// Whether this place, in lines and characters from 1, is at the end of its line.
bool ends_line(std::string_view text, uint32_t line, uint32_t column) {
    for (uint32_t at = 1; at < line; ++at) {
        const size_t end = text.find('\n');
        if (end == std::string_view::npos) return false;
        text.remove_prefix(end + 1);
    }
    text = text.substr(0, text.find_first_of("\r\n"));
    uint32_t characters = 0;
    for (const char byte : text) characters += (static_cast<unsigned char>(byte) & 0xC0) != 0x80;
    const bool has_control = !text.empty() && static_cast<unsigned char>(text.back()) < 0x20;
    return column > characters || (column == characters && !has_control);
}

}  // namespace

extern "C" ctoml_document *ctoml_parse(const char *bytes, size_t length) {
    document *const result = new document;
    const std::string_view text = length == 0 ? std::string_view("") : std::string_view(bytes, length);
    uint32_t line = 0, column = 0;
    if (has_deep_key(text, line, column)) {
        result->fail("a key has at most 64 parts", line, column);
        return result;
    }
    const toml::parse_result parsed = toml::parse(text);
    if (!parsed) {
        const toml::parse_error &error = parsed.error();
        const auto begin = error.source().begin;
        std::string description(error.description());
        // If a string's closing quote is missing, the parser reports its line break as a control character.
        if (description.find("control characters other than TAB") != std::string::npos
            && ends_line(text, begin.line, begin.column)) {
            description = "a text in this line has no closing quote";
        }
        result->fail(std::move(description), begin.line, begin.column);
        return result;
    }
    fill(*result, result->root, parsed.table());
    result->valid = 1;
    return result;
}

extern "C" void ctoml_free(ctoml_document *document_) {
    delete static_cast<document *>(document_);
}
