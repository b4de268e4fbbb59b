# SPDX-License-Identifier: Apache-2.0
"""Runs Swift Testing's bundle in many processes, and judges what they say (scripts/run-tests)."""
