// SPDX-License-Identifier: Apache-2.0

import CalendarTime
import Testing

@Suite("What cron writes is said as a calendar expression")
struct CronTests {
    @Test(
        "each field",
        arguments: [
            ("0 3 * * *", ["03:00"]), ("*/5 * * * *", ["*:00/5"]), ("* * * * *", ["*:*"]),
            ("5,35 8-18/2 * * mon-fri", ["Mon..Fri 08..18/2:05,35"]), ("0 0 1 jan,jul *", ["*-01,07-01 00:00"]),
            ("0 12 */2 * *", ["*-*-01/2 12:00"]), ("0 0 * * 0,3", ["Wed,Sun 00:00"]),
            ("0 0 * * 5-7", ["Fri..Sun 00:00"]),
            ("0 0 * * */2", ["Tue,Thu,Sat,Sun 00:00"]), ("0 0 ? * *", ["00:00"]), ("10/20 1 * * *", ["01:10/20"]),
            ("30 0 3 * * *", ["03:00:30"]), ("0 0 3 * * *", ["03:00"]), ("50/20 1 * * 1-1", ["Mon 01:50"]),
            ("@daily", ["daily"]), ("@weekly", ["Sun 00:00"]),
            ("0 6 1 * 1", ["*-*-01 06:00", "Mon 06:00"]), ("0 6 1 6 1", ["*-06-01 06:00", "Mon *-06-* 06:00"]),
        ]
    )
    func fields(text: String, calendar: [String]) throws {
        #expect(CronTimes.calendar(text) == calendar)
        for expression in calendar { _ = try CalendarExpression(expression) }
    }

    @Test(
        "what is none of cron's",
        arguments: [
            "", "0", "0 3 * *", "60 3 * * *", "0 24 * * *", "0 0 0 * *", "0 0 * 13 *", "0 0 * * 8", "5-1 * * * *",
            "*/0 * * * *", "*/70 * * * *", "a b c d e", "1- * * * *", "1,,2 * * * *", "@reboot", "0 3 * * * * *",
            "+1 * * * *",
        ]
    )
    func none(text: String) { #expect(CronTimes.calendar(text) == nil) }

    @Test("where a calendar expression belongs the error says what to write")
    func hint() {
        func error(_ text: String) -> String? {
            do throws(CalendarError) { _ = try CalendarExpression(text) } catch { return error.description }
            return nil
        }
        #expect(error("*/5 * * * *") == "this is how cron writes a time: write \"*:00/5\"")
        #expect(error("0 6 1 * 1") == "this is how cron writes a time: write [\"*-*-01 06:00\", \"Mon 06:00\"]")
    }
}
