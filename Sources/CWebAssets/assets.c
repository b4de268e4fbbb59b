// SPDX-License-Identifier: Apache-2.0

#include "torpor_web_assets.h"

// #embed belongs to C23. clang supports it in every mode, but warns if the mode is older than C23: turn the warning
// off.
#pragma clang diagnostic ignored "-Wc23-extensions"

#define SCRIPT "text/javascript; charset=utf-8"
#define FILES(file) \
    file(index_html, "index.html", "text/html; charset=utf-8") \
    file(style_css, "style.css", "text/css; charset=utf-8") \
    file(icon_svg, "icon.svg", "image/svg+xml") \
    file(app_js, "app.js", SCRIPT) \
    file(actions_js, "actions.js", SCRIPT) \
    file(alerts_js, "alerts.js", SCRIPT) \
    file(apppage_js, "apppage.js", SCRIPT) \
    file(charts_js, "charts.js", SCRIPT) \
    file(dom_js, "dom.js", SCRIPT) \
    file(events_js, "events.js", SCRIPT) \
    file(face_js, "face.js", SCRIPT) \
    file(format_js, "format.js", SCRIPT) \
    file(graph_js, "graph.js", SCRIPT) \
    file(keys_js, "keys.js", SCRIPT) \
    file(logs_js, "logs.js", SCRIPT) \
    file(machine_js, "machine.js", SCRIPT) \
    file(memory_js, "memory.js", SCRIPT) \
    file(overview_js, "overview.js", SCRIPT) \
    file(permissions_js, "permissions.js", SCRIPT) \
    file(reports_js, "reports.js", SCRIPT) \
    file(settings_js, "settings.js", SCRIPT) \
    file(snapshot_js, "snapshot.js", SCRIPT) \
    file(states_js, "states.js", SCRIPT) \
    file(store_js, "store.js", SCRIPT) \
    file(timeline_js, "timeline.js", SCRIPT) \
    file(transfers_js, "transfers.js", SCRIPT) \
    file(unhandled_js, "unhandled.js", SCRIPT)

static const unsigned char index_html[] = {
#embed "assets/index.html"
};
static const unsigned char style_css[] = {
#embed "assets/style.css"
};
static const unsigned char icon_svg[] = {
#embed "assets/icon.svg"
};
static const unsigned char app_js[] = {
#embed "assets/app.js"
};
static const unsigned char actions_js[] = {
#embed "assets/actions.js"
};
static const unsigned char apppage_js[] = {
#embed "assets/apppage.js"
};
static const unsigned char alerts_js[] = {
#embed "assets/alerts.js"
};
static const unsigned char charts_js[] = {
#embed "assets/charts.js"
};
static const unsigned char dom_js[] = {
#embed "assets/dom.js"
};
static const unsigned char events_js[] = {
#embed "assets/events.js"
};
static const unsigned char face_js[] = {
#embed "assets/face.js"
};
static const unsigned char format_js[] = {
#embed "assets/format.js"
};
static const unsigned char graph_js[] = {
#embed "assets/graph.js"
};
static const unsigned char keys_js[] = {
#embed "assets/keys.js"
};
static const unsigned char logs_js[] = {
#embed "assets/logs.js"
};
static const unsigned char machine_js[] = {
#embed "assets/machine.js"
};
static const unsigned char memory_js[] = {
#embed "assets/memory.js"
};
static const unsigned char overview_js[] = {
#embed "assets/overview.js"
};
static const unsigned char permissions_js[] = {
#embed "assets/permissions.js"
};
static const unsigned char reports_js[] = {
#embed "assets/reports.js"
};
static const unsigned char settings_js[] = {
#embed "assets/settings.js"
};
static const unsigned char snapshot_js[] = {
#embed "assets/snapshot.js"
};
static const unsigned char states_js[] = {
#embed "assets/states.js"
};
static const unsigned char store_js[] = {
#embed "assets/store.js"
};
static const unsigned char timeline_js[] = {
#embed "assets/timeline.js"
};
static const unsigned char transfers_js[] = {
#embed "assets/transfers.js"
};
static const unsigned char unhandled_js[] = {
#embed "assets/unhandled.js"
};

#define ENTRY(symbol, name, type) {name, type, symbol, sizeof symbol},
static const struct torpor_web_asset assets[] = {FILES(ENTRY)};

const struct torpor_web_asset *torpor_web_assets(void)
{
    return assets;
}

size_t torpor_web_asset_count(void)
{
    return sizeof assets / sizeof *assets;
}
