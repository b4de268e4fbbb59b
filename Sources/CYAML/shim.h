/* SPDX-License-Identifier: Apache-2.0 */

#ifndef TORPOR_CYAML_H
#define TORPOR_CYAML_H

#include <yaml.h>

#endif
