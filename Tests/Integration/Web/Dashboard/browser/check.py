#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Looks at the dashboard in a real Chromium: check.py URL TOKEN APP PID AXE, where APP is one that runs as PID, says
`line N` all the time, and has others beside it. Each check says what it saw; the first that fails ends it with 1."""
import json
import sys
import time
import urllib.request

from webdriver import Browser, Problem

PAGES = ["#/", "#/timeline", "#/memory", "#/events", "#/reports", "#/transfers", "#/graph", "#/machine"]
url, token, app, pid, axe = sys.argv[1:]
browser = None


def letter():
    with open(f"/proc/{pid}/stat") as file:
        return file.read().rsplit(")", 1)[1].split()[0]


def expect(is_so, what):
    if not is_so:
        raise Problem(f"it is not so that {what}")


def ask(verb):
    request = urllib.request.Request(f"{url}/api/v1/apps/{app}/{verb}", b"{}", {
        "Authorization": f"Bearer {token}", "X-Torpor-Request": "1"}, method="POST")
    urllib.request.urlopen(request, timeout=20).read()


def row(state):
    script = "return document.querySelector(`tr[data-app=\"${arguments[0]}\"]`)?.dataset.state === arguments[1]"
    browser.wait(script, app, state, what=f"the row of {app} shows {state}")


def page(address):
    browser.run("location.hash = arguments[0]", address)
    browser.wait("return document.querySelector('h1') !== null")


def whole_page(address):
    """Goes to a page, and waits until all that it has asked for is there and drawn."""
    browser.run("""
        window.isShown = location.hash === arguments[0];
        // The dashboard listens since it was loaded, so it hears of the change first.
        addEventListener("hashchange", () => { window.isShown = true; }, { once: true });
        if (window.unanswered !== undefined) return;
        window.unanswered = 0;
        const ask = window.fetch;
        window.fetch = async (...words) => {
            window.unanswered += 1;
            try {
                const answer = await ask(...words);
                await answer.clone().arrayBuffer();
                return answer;
            } finally { window.unanswered -= 1; }
        };""", address)
    page(address)
    is_whole = "window.isShown && window.unanswered === 0"
    script = f"return new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done({is_whole}))))"
    browser.wait(script, what=f"{address} is whole")


def enters():
    browser.go(url + "/")
    browser.wait("return document.querySelector('.enter input') !== null", what="who has no access is asked for the token")
    # The refusals before it are the only thing that the console may say.
    lines = browser.console()
    expect(all("401" in line for line in lines), "the console says nothing but 401: " + json.dumps(lines))
    browser.go(f"{url}/?token={token}")
    row("active")
    expect(browser.run("return location.search === ''"), "the token is gone from the address")
    expect("torpor-web" not in browser.run("return document.cookie"), "no script sees the cookie")


def suspends():
    browser.click(f'tr[data-app="{app}"] button[data-verb="suspend"]')
    row("suspended")
    # A shell that waits for its vfork stops with its child; where that was stopped before its exec, both stay as they are.
    letters = []
    while letters[-1:] != ["T"] and letters[-200:] != ["D"] * 200 and len(letters) < 2000:
        time.sleep(0.01)
        letters.append(letter())
    expect(letters[-1] == "T" or letters[-200:] == ["D"] * 200, f"/proc/{pid}/stat says T, and not {letters[-1]}")
    text = browser.run("return document.querySelector(`tr[data-app=\"${arguments[0]}\"] .stateful`).textContent", app)
    expect("suspended" in text, "the row has the word")
    expect(browser.run("return document.querySelector(`tr[data-app=\"${arguments[0]}\"] .stateful svg`) !== null", app), "it has the symbol")
    # torpor-web looks by itself every two seconds, counted from its last look. On a busy machine a change may take long
    # although torpor-web hears of it at once, but not each time.
    for verb, state in [("resume", "background"), ("suspend", "suspended")] * 5:
        began = time.monotonic()
        ask(verb)
        row(state)
        if time.monotonic() - began < 1:
            break
    else:
        raise Problem("what somebody else does is seen only when torpor-web looks by itself")
    if state == "suspended":
        ask("resume")
        row("background")
    expect(letter() != "T", "it runs again")


def asks_before_it_stops():
    browser.click(f'tr[data-app="{app}"] .menu > button')
    browser.click(f'tr[data-app="{app}"] button[data-verb="stop"]')
    browser.wait("return document.querySelector('dialog[open]')?.textContent.includes('Stop')", what="it asks before it stops an app")
    browser.type("\ue00c")
    browser.wait("return !document.querySelector('dialog[open]')")
    expect(letter() != "", "it runs on after Escape")


def says_how_an_app_ended():
    script = """
        const badge = document.querySelector('tr[data-app="moody"] .wide .badge');
        return !badge.hidden && badge.textContent === "exit-failure" && badge.scrollWidth <= badge.clientWidth
            && badge.getBoundingClientRect().width > 0;"""
    browser.wait(script, what="the row of moody has the reason of its end, and all of it")
    expect(browser.run("return document.querySelector('tr[data-app=\"web\"] .wide .badge').hidden"), "an app that runs has none")


def filters():
    browser.run("document.activeElement?.blur()")
    browser.type("/")
    expect(browser.run("return document.activeElement.id") == "filter", "/ leads to the filter")
    browser.type("quiet")
    browser.wait("return document.querySelectorAll('tr.row').length === 1", what="one row is left")
    browser.type("\ue003" * 5 + "\ue00c")
    browser.wait("return document.querySelectorAll('tr.row').length > 2", what="all rows are back")
    browser.type("j")
    expect(browser.run("return document.activeElement.className") == "name", "j leads to a row")
    browser.click('.chip[data-state="background"]')
    browser.wait("return [...document.querySelectorAll('tr.row')].every((row) => row.dataset.state === 'background')")
    browser.click('.chip[data-state="background"]')
    browser.run("document.activeElement?.blur()")
    browser.type("?")
    browser.wait("return document.querySelector('dialog[open] .keys') !== null", what="? shows the keys")
    browser.type("\ue00c")


def shows_the_timeline():
    page("#/timeline")
    browser.wait("return document.querySelectorAll('.lane').length >= 3", what="there is a lane for each app")
    browser.wait("return document.querySelector('.lane .seg.s-suspended') !== null", what="the suspension is in its lane")
    browser.run("document.querySelector('.lane').focus()")
    browser.type("\ue012")
    browser.wait("return document.querySelector('.tip:not([hidden])')?.textContent.length > 5", what="a lane tells states and times")


def shows_an_app():
    page(f"#/app/{app}")
    browser.wait("return document.querySelectorAll('.log div').length > 3", what="its output is there")
    last = "return [...document.querySelectorAll('.log[role=log] div')].at(-1)?.textContent"
    before = browser.run(last)
    browser.wait(f"{last} !== arguments[0]", before, what="the output goes on")
    browser.run("const input = document.querySelector('.card input[type=search]'); input.value = '7'; input.dispatchEvent(new Event('input'))")
    browser.wait("const all = [...document.querySelectorAll('.log[role=log] div span')]; return all.length && all.every((line) => line.textContent.includes('7'))",
                 what="only lines with the text are shown")
    browser.wait("return document.querySelector('table .mono') !== null", what="its processes are there")
    expect(browser.run("return document.querySelector('h1').textContent") == app, "its name is above")


def shows_snapshots():
    page("#/app/pictured")
    browser.wait("return document.querySelector('.snapshot img')?.naturalWidth === 1", what="the picture is there")
    expect(browser.run("return document.querySelector('.snapshot img').alt").startswith("What pictured showed, "), "it is told in words")
    browser.wait("return document.querySelector('.card[aria-label=Snapshot] .muted').textContent.startsWith('png, 70 B, ')", what="its age is told")
    page(f"#/app/{app}")
    browser.wait("return document.querySelector('.snapshot pre')?.textContent === '<b>shown</b>'", what="a text is text, without a terminal's escapes")
    page("#/app/db")
    browser.wait("return document.querySelector('table .mono') !== null")
    expect(browser.run("return document.querySelector('.card[aria-label=Snapshot]').hidden"), "an app without one has no card for it")
    page("#/")
    browser.wait("return document.querySelector('tr[data-app=pictured] .thumbnail img')?.naturalWidth === 1", what="the list has it, small")
    expect(browser.run("return document.querySelector('tr[data-app=pictured] .thumbnail').offsetWidth > 20"), "it is to be seen")
    expect(browser.run(f"return document.querySelector('tr[data-app={app}] .thumbnail').hidden"), "a text is no picture")


def shows_faces():
    page("#/")
    browser.wait("return document.querySelector('tr[data-app=pictured] .face img')?.naturalWidth === 32", what="the icon is there")
    expect(browser.run("return document.querySelector('tr[data-app=pictured] .name').textContent") == "Picture <b>book</b>pictured", "it is called by its title, which is text")
    expect(browser.run("return document.querySelector('tr[data-app=db] .face').innerText") == "D", "a letter stands for a picture")
    browser.run("document.activeElement?.blur()")
    browser.type("/")
    browser.type("book")
    browser.wait("return [...document.querySelectorAll('tr.row')].map((row) => row.dataset.app).join() === 'pictured'", what="titles are found")
    browser.type("\ue003" * 4 + "\ue00c")
    page("#/app/pictured")
    browser.wait("return document.querySelector('.face:not([hidden]) img')?.naturalWidth === 32", what="its page has it too")
    expect(browser.run("return document.querySelector('h1').innerText").replace("\n", " ").startswith("Picture <b>book</b>"), "its title is above")
    expect(browser.run("return document.querySelector('.summary').innerText") == "What <b>it</b> shows", "its summary is below, as text")
    theme = browser.run("return document.documentElement.dataset.theme ?? null")
    for name, width in (("dark", 48), ("light", 32)):
        browser.run(f"document.documentElement.dataset.theme = '{name}'")
        browser.wait(f"return document.querySelector('.face:not([hidden]) img')?.naturalWidth === {width}", what=f"it has the icon for the {name} theme")
    browser.run(f"const {{ dataset }} = document.documentElement; {json.dumps(theme)} === null ? delete dataset.theme : dataset.theme = {json.dumps(theme)}")
    expect(browser.run("return !window.hurt"), "what stands in an icon does not run")


def settings():
    request = urllib.request.Request(f"{url}/api/v1/apps/pictured/settings", headers={"Authorization": f"Bearer {token}"})
    return {setting["key"]: setting for setting in json.load(urllib.request.urlopen(request, timeout=20))["settings"]}


def sets_settings():
    page("#/app/pictured")
    browser.wait("return document.querySelector('#setting-port')?.value === '8000'", what="the form has the default")
    label = browser.run("return document.querySelector('label[for=setting-port]').innerText")
    expect(label in ("Port <b>", "Anschluss <b>"), "a setting is called by its title, which is text")
    change = "const field = document.querySelector(arguments[0]); field.value = arguments[1]; field.form.requestSubmit()"
    said = "return document.querySelector('.settings-form [role=status]').textContent"
    browser.run(change, "#setting-port", "8010")
    browser.wait(f"{said}.startsWith('port changed')", what="what has changed is told")
    expect(settings()["port"]["value"] == 8010, "it is set")
    browser.run(change, "#setting-theme", "dark")
    browser.wait(f"{said}.startsWith('theme changed')", what="a choice is set")
    browser.run(change, "#setting-key", "s3cret")
    browser.wait("return document.querySelector('.settings-form').innerText.includes('It is set.')", what="a secret is set")
    expect("s3cret" not in browser.run("return document.documentElement.outerHTML"), "and is not shown again")
    expect(browser.run("return document.querySelector('#setting-key').value") == "", "nor filled in")
    browser.run(change, "#setting-port", "99999")
    browser.wait("return [...document.querySelectorAll('.toast')].some((toast) => toast.textContent.includes('port'))",
                 what="what cannot be is refused with a sentence")
    expect(settings()["port"]["value"] == 8010, "and changes nothing")
    # A browser writes down each refusal.
    lines = browser.console()
    expect(all("/settings" in line and "409" in line for line in lines), "the console has nothing else: " + json.dumps(lines))
    browser.click("button[aria-label='Unset port']")
    browser.wait("return document.querySelector('#setting-port')?.value === '8000'", what="unset, it has its default again")
    page("#/app/db")
    browser.wait("return document.querySelector('table .mono') !== null")
    expect(browser.run("return document.querySelector('.card[aria-label=Settings]').hidden"), "an app without any has no card for them")


def shows_unhandled():
    page("#/app/deaf")
    card = "document.querySelector('.card[aria-label=\"Unhandled messages\"]')"
    browser.wait(f"return {card}?.innerText.includes('news <b>')", what="what nobody handled is there, as text")
    browser.click("button[aria-label^='Drop: news']")
    browser.wait(f"return {card}.hidden", what="what is dropped is gone")
    page("#/transfers")
    browser.wait("return document.querySelector('.empty')?.textContent === 'Nothing is transferred.'", what="no transfers are said")


def answers_permissions():
    page("#/app/caged")
    card = "document.querySelector('.card[aria-label=Permissions]')"
    browser.wait(f"return {card}?.innerText.includes('network (443)')", what="what the app asks for is there")
    text = browser.run(f"return {card}.innerText")
    expect("Sees <b>you" in text or "Sieht <b>dich" in text, "and why, as text, in the reader's language")
    browser.click("button[aria-label='Allow camera']")
    browser.wait(f"return {card}.querySelector('button[aria-label=\"Allow camera\"]') === null && {card}.innerText.includes('allowed')", what="it is allowed")
    browser.click("button[aria-label='Deny network']")
    browser.wait(f"return {card}.innerText.includes('denied')", what="and another one denied")
    page("#/app/db")
    browser.wait("return document.querySelector('table .mono') !== null")
    expect(browser.run(f"return {card}.hidden"), "an app that asks for nothing has no card for it")


def shows_alerts():
    page("#/")
    place = "document.getElementById('alerts')"
    browser.wait(f"return {place}.innerText.includes('Disk <b>full')", what="an alert is there, as text")
    expect(browser.run(f"return [...{place}.querySelectorAll('button')].map((one) => one.textContent).join()") == "Open,Clean,Dismiss",
           "it can be answered and dismissed")
    browser.click("button[aria-label='Dismiss: Disk <b>full']")
    browser.wait(f"return {place}.hidden", what="one that is dismissed is gone")


def is_hostile_proof():
    page("#/app/quiet")
    browser.wait("return [...document.querySelectorAll('.log div')].some((line) => line.textContent.includes('<img'))",
                 what="what an app writes is text")
    expect(browser.run("return document.querySelector('main img, main script') === null && !window.hurt"), "and nothing but text")


def is_narrow():
    browser.size(360, 780)
    for address in PAGES + [f"#/app/{app}", "#/app/pictured"]:
        whole_page(address)
        wide = browser.run("return document.documentElement.scrollWidth")
        expect(wide <= 360, f"{address} fits into 360 pixels ({wide})")
    browser.size(1280, 860)


def is_accessible():
    with open(axe, encoding="utf-8") as file:
        program = file.read()
    found = []
    for scheme in ("light", "dark"):
        browser.scheme(scheme)
        for address in PAGES + [f"#/app/{app}", "#/app/pictured"]:
            whole_page(address)
            if not browser.run("return window.axe !== undefined"):
                # By the driver, since the page itself lets no other script in.
                browser.devtools("Runtime.evaluate", {"expression": program})
            result = browser.run("return axe.run(document, {resultTypes: ['violations']})")
            for one in result["violations"]:
                if one["impact"] in ("serious", "critical"):
                    found.append(f"{scheme} {address}: {one['id']}: {one['help']}: {one['nodes'][0]['html'][:160]}")
    expect(not found, "axe finds nothing serious:\n" + "\n".join(found))
    browser.run("document.getElementById('theme').click()")
    colours = browser.run("return [document.documentElement.dataset.theme, getComputedStyle(document.documentElement).backgroundColor]")
    browser.run("document.getElementById('theme').click()")
    other = browser.run("return [document.documentElement.dataset.theme, getComputedStyle(document.documentElement).backgroundColor]")
    expect(colours[0] != other[0] and colours[1] != other[1], "the toggle changes the colours")


def says_nothing():
    lines = browser.console()
    expect(not lines, "the console is empty: " + json.dumps(lines))


def main():
    global browser
    with Browser() as browser:
        for check in (enters, suspends, asks_before_it_stops, says_how_an_app_ended, filters, shows_the_timeline, shows_an_app, shows_snapshots, shows_faces, sets_settings, shows_unhandled, answers_permissions, shows_alerts, is_hostile_proof, is_narrow,
                      is_accessible, says_nothing):
            began = time.monotonic()
            try:
                check()
            except Problem as problem:
                print(f"{check.__name__}: {problem}")
                print("\n".join(browser.console()))
                return 1
            print(f"{check.__name__}: {time.monotonic() - began:.1f} s", flush=True)
    return 0


sys.exit(main())
