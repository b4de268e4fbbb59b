#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Opens an app that is on its way in a real Chromium: holding.py URL GO. It sees the holding page, lets the app come up by
making the file GO, and sees the app without having asked for it again."""
import sys

from webdriver import Browser, Problem

url, go = sys.argv[1:]


def expect(is_so, what):
    if not is_so:
        raise Problem(f"it is not so that {what}")


with Browser() as browser:
    browser.go(url)
    expect(browser.run("return document.title") == "The Shop is starting", "the page is titled")
    expect(browser.run("return document.querySelector('img.icon').naturalWidth") == 32, "it has the icon")
    browser.run("window.mark = 1")
    browser.wait("return window.mark !== 1", what="it comes again by itself", seconds=60)
    expect(browser.run("return document.title") == "The Shop is starting", "it is the page once more")
    open(go, "w").close()
    browser.wait("return document.title === 'here'", what="the app is there", seconds=60)
    # The page's own answer is a 503, which the console has; nothing else is there.
    lines = [line for line in map(str, browser.console()) if " 503 " not in line]
    expect(not lines, f"the console is empty: {lines}")
print("seen")
