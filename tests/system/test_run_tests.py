"""The runner of `make check` itself: whatever a test program does, the last line and the exit code tell the truth."""
import subprocess
import sys
import time

import pytest

from conftest import ROOT

REPORT = """#!/bin/bash
for word in "$@"; do case $word in --gtest_output=xml:*) report=${word#*xml:} ;; esac; done
cat >"$report" <<'END'
<?xml version="1.0"?><testsuites><testsuite name="A">
CASES
</testsuite></testsuites>
END
"""
PASSED = '<testcase name="Good" classname="A" status="run" result="completed"/>'
FAILED = '<testcase name="Bad" classname="A" status="run" result="completed"><failure message="1 is not 2"/></testcase>'
SKIPPED = '<testcase name="Gpu" classname="A" status="run" result="skipped"><skipped message="no GPU here"/></testcase>'
DISABLED = '<testcase name="Off" classname="A" status="notrun" result="suppressed"/>'


def run_tests(folder, only="unit", limit_s=20):
    command = [sys.executable, str(ROOT / "tests" / "run_tests"), "--build", str(folder), "--only", only]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env={"PATH": "/usr/bin:/bin", "FLUENTPS_TEST_LIMIT_S": str(limit_s)})
    return done.returncode, done.stdout


def program(folder, name, text):
    path = folder / "tests" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)


@pytest.mark.parametrize("text, last_line, code", [
    (REPORT.replace("CASES", PASSED + SKIPPED + DISABLED), "1 passed, 0 failed, 2 skipped", 0),
    (REPORT.replace("CASES", PASSED + FAILED) + "exit 1", "1 passed, 1 failed, 0 skipped", 1),
    (REPORT.replace("CASES", PASSED) + "kill -SEGV $$", "1 passed, 1 failed, 0 skipped", 1),  # after its tests
    ("#!/bin/bash\nexit 0", "0 passed, 1 failed, 0 skipped", 1),                              # ran no test
    ("#!/bin/bash\necho torn >${1#*xml:}", "0 passed, 1 failed, 0 skipped", 1),
    (REPORT.replace("CASES", SKIPPED), "0 passed, 0 failed, 1 skipped", 1),                   # nothing was shown
])
def test_counts(tmp_path, text, last_line, code):
    program(tmp_path, "unit-a", text)
    got, out = run_tests(tmp_path)
    assert out.splitlines()[-1] == last_line
    assert out.count(" passed, ") == 1
    assert got == code


def test_skips_are_listed_with_reasons(tmp_path):
    program(tmp_path, "unit-a", REPORT.replace("CASES", PASSED + SKIPPED + DISABLED))
    _, out = run_tests(tmp_path)
    assert "skipped A.Gpu: no GPU here" in out
    assert "skipped A.Off: disabled" in out


def test_program_that_cannot_tell_its_ranks_is_a_failure(tmp_path):
    program(tmp_path, "mpi/broken", "#!/bin/bash\nexit 1")
    got, out = run_tests(tmp_path, only="mpi")
    assert out.splitlines()[-1] == "0 passed, 1 failed, 0 skipped"
    assert got == 1


def test_hanging_program_is_ended_with_all_it_started(tmp_path):
    # It ignores SIGTERM; one child opens a session of its own, as a program under test does.
    program(tmp_path, "unit-a", "#!/bin/bash\ntrap '' TERM\necho before\nsetsid sleep 987 &\nsleep 986 & wait; sleep 985")
    begin = time.time()
    got, out = run_tests(tmp_path, limit_s=2)
    assert time.time() - begin < 15
    assert "before" in out and "ended after 2 s" in out
    assert out.splitlines()[-1] == "0 passed, 1 failed, 0 skipped"
    assert got == 1
    assert subprocess.run(["pgrep", "-f", "^sleep 98[5-7]$"], capture_output=True, text=True).stdout == ""
