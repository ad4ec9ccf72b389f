#!/bin/sh
# Installs the wheel of the folder $1 into an empty environment, imports every module, compares the files with the tree, and
# runs `tenure up --ephemeral` until it answers.
set -eu
dist=$(cd "$1" && pwd)
root=$(pwd)
work=$(mktemp -d)
chmod 755 "$work"
server=
trap '[ -z "$server" ] || kill "$server" 2>/dev/null || true; rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/python" -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/run.txt
"$work/venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps "$dist"/tenure-*.whl
cd "$work"
"$work/venv/bin/python" - "$root" <<'PY'
import importlib, pathlib, pkgutil, sys, sysconfig
import tenure
root = pathlib.Path(sys.argv[1])
installed = pathlib.Path(tenure.__file__).parent
assert str(installed).startswith(sysconfig.get_paths()["purelib"]), installed
skipped = {"tenure.migrations.env"}
for module in pkgutil.walk_packages([str(installed)], "tenure."):
    if module.name not in skipped and ".versions." not in module.name:
        importlib.import_module(module.name)
def files(folder, patterns):
    return {p.relative_to(folder).as_posix() for q in patterns for p in folder.rglob(q) if "__pycache__" not in p.parts}
patterns = ("*.py", "*.sql", "*.mako", "*.graphql", "py.typed")
expected = files(root / "src/tenure", ("*.py", "py.typed"))
for name in ("db", "workers", "resolvers", "schema", "migrations"):
    expected |= {f"{name}/{f}" for f in files(root / name, patterns)}
missing, extra = expected - files(installed, patterns), files(installed, patterns) - expected
assert not missing and not extra, (missing, extra)
assert (installed / "static/index.html").is_file() and list((installed / "demo").glob("*.md"))
tops = {p.name for p in installed.parent.iterdir()}
assert not tops & {"db", "workers", "resolvers", "schema", "migrations", "tests", "docs", "src"}, tops
print(f"{len(expected)} files installed, each module imports")
PY
"$work/venv/bin/tenure" up --ephemeral --port 8765 >"$work/log" 2>&1 &
server=$!
python3 - <<'PY' || { cat "$work/log"; exit 1; }
import time, urllib.request
deadline = time.monotonic() + 60
while True:
    try:
        assert urllib.request.urlopen("http://127.0.0.1:8765/readyz").status == 200
        page = urllib.request.urlopen("http://127.0.0.1:8765/").read().decode()
        assert "<title>Tenure</title>" in page, page
        break
    except OSError:
        if time.monotonic() > deadline:
            raise
        time.sleep(0.2)
PY
kill -TERM "$server"
wait "$server"
server=
echo "The wheel serves and stops."
