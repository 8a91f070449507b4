#!/usr/bin/env bash
# Classifies one example picture with curl alone: the .json files are complete infer requests.
#
#     examples/clients/classify.sh seven
set -euo pipefail
images="$(cd "$(dirname "$0")/../images" && pwd)"
curl --fail-with-body -sS -H 'Content-Type: application/json' \
  --data-binary "@${images}/${1:-seven}.json" \
  "http://${NEREID_URL:-localhost:8000}/v2/models/digits/infer"
echo
