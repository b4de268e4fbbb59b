# SPDX-License-Identifier: Apache-2.0
"""Runs a Swift Testing bundle in many processes and evaluates their output (scripts/run-tests)."""
