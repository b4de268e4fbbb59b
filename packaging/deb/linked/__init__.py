# SPDX-License-Identifier: Apache-2.0
"""What is linked into the programs of the packages, and under which licence it is."""
