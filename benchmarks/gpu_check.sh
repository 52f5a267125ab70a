#!/bin/sh
# Runs the tests that a GPU can change, on a machine with one where nothing can be installed.
#
#     benchmarks/gpu_check.sh [FOLDER] [OPTIONS OF PYTEST]
#
# FOLDER holds wheels for that machine's Python of what it lacks beside torch and transformers. Tests of the models,
# the executor and the stages, and training need: pytest hypothesis sortedcontainers iniconfig pluggy polars
# polars_runtime_32 pyarrow pydantic pydantic_core annotated_types typing_inspection scipy tomli_w vaderSentiment
# (from a machine that can install:
#     pip download --only-binary :all: --python-version 3.12 --dest FOLDER NAMES, without those that are there).
# Warnings are not errors here: the versions are not the ones we test with.
set -eu
cd "$(dirname "$0")/.."
python=${PYTHON:-python3}

packages=$(mktemp -d)
trap 'rm -rf "$packages"' EXIT
if [ $# -gt 0 ] && [ -d "$1" ]; then
    for wheel in "$1"/*.whl; do "$python" -m zipfile -e "$wheel" "$packages"; done
    shift
fi
export PYTHONPATH="$PWD/src:$packages${PYTHONPATH:+:$PYTHONPATH}" HF_HUB_OFFLINE=1

"$python" - <<'PYTHON' || exit 2
import sys
import torch, transformers
if not torch.cuda.is_available():
    sys.exit("no CUDA device here: nothing would be tested that the usual tests do not test")
print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, transformers {transformers.__version__}")
PYTHON

# -o: the plugins that pyproject.toml names need not be there
"$python" -m pytest -o addopts="" -o filterwarnings=default -W ignore -p no:cacheprovider -ra -q \
    tests/models tests/engine/test_executor.py tests/engine/test_stage.py tests/engine/test_batching.py tests/train \
    --ignore tests/models/endpoint --ignore tests/models/test_provider_example.py "$@"
