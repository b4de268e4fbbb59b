/* SPDX-License-Identifier: Apache-2.0 */

#ifndef TORPOR_WEB_ASSETS_H
#define TORPOR_WEB_ASSETS_H

#include <stddef.h>

/// A file of the dashboard's page.
struct torpor_web_asset {
    const char *name;
    /// The value of the header field Content-Type.
    const char *type;
    const unsigned char *bytes;
    size_t size;
};

/// All files of the page. This is a function, because Swift cannot import an array of unknown size.
const struct torpor_web_asset *torpor_web_assets(void);
size_t torpor_web_asset_count(void);

#endif
