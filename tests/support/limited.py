#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs a test script that says where it hangs: limited.py SECONDS SCRIPT [ARGUMENT...]. After SECONDS the line that every thread
is at is printed; CTest's own limit, a little later, ends it."""
import faulthandler
import os
import runpy
import sys

seconds, script = float(sys.argv[1]), sys.argv[2]
sys.argv = sys.argv[2:]
sys.path[0] = os.path.dirname(os.path.abspath(script))
faulthandler.enable()
faulthandler.dump_traceback_later(seconds)
runpy.run_path(script, run_name="__main__")
