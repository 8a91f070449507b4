#!/usr/bin/env bash
# The LLM bench on a machine with a GPU that has CUDA's compiler, cmake and Python, but no Node and no network, and to which
# files travel in calls of at most 64 MiB. README.md beside this tells the order of the calls.
#
#   here:   gpu.sh pack                  makes .cache/gpu/{tools,model-a,model-b}
#   there:  gpu.sh begin [ARCH]          with .cache/gpu/tools: unpacks, starts the build of libllama, returns at once
#           gpu.sh model                 with .cache/gpu/model-a: keeps the first half of the model
#           gpu.sh bench [options]       with .cache/gpu/model-b: waits for the build, measures, writes to $OUT
set -euo pipefail
cd "$(dirname "$0")/../.."
packs=.cache/gpu
home="${NEREID_GPU_HOME:-$HOME/nereid-gpu}"

die() {
  echo "gpu.sh: $*" >&2
  exit 1
}

unpack() { # archive, folder
  python3 -c 'import sys, tarfile; tarfile.open(sys.argv[1]).extractall(sys.argv[2])' "$1" "$2"
}

# What does not change is packed once: Node, the source and the model. The server is packed every time.
pack() {
  [ -d dist ] || die 'no dist: run npm run build first'
  mkdir -p "$packs/tools" "$packs/model-a" "$packs/model-b"
  scratch=$(mktemp -d)
  trap 'rm -rf "$scratch"' EXIT
  [ -f "$packs/model-b/sum" ] || pack_model
  [ -f "$packs/tools/source.tar.xz" ] || pack_source
  if [ ! -f "$packs/tools/node.tar.xz" ]; then
    cp "$(command -v node)" "$scratch/node"
    tar -cJf "$packs/tools/node.tar.xz" -C "$scratch" node
  fi
  # Without ONNX Runtime's 290 MB and the prebuilt libraries, which are not used there.
  npm ls --all --omit=dev --parseable 2> /dev/null | tail -n +2 | sed "s|^$PWD/||" | sort -u |
    grep -Ev '^node_modules/(onnxruntime|@redis|@node-llama-cpp|openai)' > "$scratch/list" || true
  tar -cJf "$packs/tools/node_modules.tar.xz" --exclude='*.map' --exclude='*.d.ts' -T "$scratch/list"
  tar -cJf "$packs/tools/dist.tar.xz" --exclude='*.test.js' --exclude='*.map' dist
  du -sh "$packs"/*
}

pack_model() {
  local model
  model=$(node --input-type=module -e '
    import { prepareModel } from "./bench/llm/environment.mjs";
    console.log(await prepareModel({ say: console.error }));')
  split -n 2 "$model" "$scratch/model-"
  mv "$scratch/model-aa" "$packs/model-a/model.gguf.a"
  mv "$scratch/model-ab" "$packs/model-b/model.gguf.b"
  sha256sum < "$model" > "$packs/model-b/sum"
}

# Only what is compiled: 8 MB instead of the 35 of the bundle.
pack_source() {
  npm pack --silent --ignore-scripts --pack-destination "$scratch" node-llama-cpp@3.22.1 > /dev/null
  tar -xzf "$scratch"/*.tgz -C "$scratch" package/llama/gitRelease.bundle
  git -c advice.detachedHead=false clone --quiet "$scratch/package/llama/gitRelease.bundle" "$scratch/llama.cpp"
  git -C "$scratch/llama.cpp" archive HEAD ggml src include common tools vendor cmake scripts CMakeLists.txt LICENSE |
    xz -T0 > "$packs/tools/source.tar.xz"
}

begin() {
  local arch="${1:-90a}"
  rm -rf "$home" && mkdir -p "$home/bin" "$home/llama.cpp"
  unpack "$packs/tools/node.tar.xz" "$home/bin"
  chmod +x "$home/bin/node"
  unpack "$packs/tools/source.tar.xz" "$home/llama.cpp"
  # Not into the working tree: what is carried with a later call may replace it.
  unpack "$packs/tools/node_modules.tar.xz" "$home"
  unpack "$packs/tools/dist.tar.xz" "$home"
  # In a session of its own, it goes on while the model travels.
  PATH="$home/bin:$PATH" setsid nohup bash -c '
    node scripts/build-libllama.mjs --cuda "$1" --with-server --from "$2/llama.cpp" --work "$2/work" --out "$2/lib" &&
      touch "$2/built" || touch "$2/failed"' build "$arch" "$home" > "$home/build.log" 2>&1 < /dev/null &
  sleep 20
  cat "$home/build.log"
  nvidia-smi --query-gpu=name,memory.total,driver_version --format=csv || true
}

keep_model() {
  [ -f "$packs/model-a/model.gguf.a" ] || die 'carry .cache/gpu/model-a with this call'
  cp "$packs/model-a/model.gguf.a" "$home/"
  tail -n 2 "$home/build.log"
}

join_model() {
  [ -f "$home/model.gguf" ] && return
  [ -f "$packs/model-b/model.gguf.b" ] || die 'carry .cache/gpu/model-b with this call'
  cat "$home/model.gguf.a" "$packs/model-b/model.gguf.b" > "$home/model.new"
  [ "$(sha256sum < "$home/model.new")" = "$(cat "$packs/model-b/sum")" ] || die 'the model did not arrive whole'
  mv "$home/model.new" "$home/model.gguf"
}

wait_for_build() {
  local left="${NEREID_GPU_WAIT_S:-400}"
  until [ -f "$home/built" ]; do
    if [ -f "$home/failed" ]; then
      cat "$home/build.log" >&2
      die 'the build failed'
    fi
    [ "$left" -gt 0 ] || die "still building: $(tail -n 1 "$home/build.log"); call again"
    sleep 5
    left=$((left - 5))
  done
  tail -n 2 "$home/build.log"
}

# A dist or node_modules that was carried with the call is newer than the one of the first call.
complete_tree() {
  local name
  for name in dist node_modules; do
    [ -e "$name" ] || cp -r "$home/$name" "$name"
  done
}

bench() {
  local out="${OUT:-$home}"
  join_model
  wait_for_build
  complete_tree
  export PATH="$home/bin:$PATH"
  # libllama's own bench: no Node, no sampling at all.
  "$home/lib/llama-batched-bench" --model "$home/model.gguf" --ctx-size 16384 --n-gpu-layers 99 --kv-unified \
    -npp 32 -ntg 64 -npl 1,4,16,64 2> "$out/batched-bench.log" | tee "$out/batched-bench.txt" || true
  node bench/llm/run.mjs --library "$home/lib" --model "$home/model.gguf" --gpu-layers 99 --threads 1 --no-ledger \
    --json "$out/llm-gpu.json" --rounds 1 --seconds 4 --scenario short,shared \
    --only libllama,libllama-split,libllama-device,nereid,llama-server,llama-server-device "$@" 2>&1 | tee "$out/bench.log"
}

command="${1:-}"
[ $# -gt 0 ] && shift
case "$command" in
  pack) pack ;;
  begin) begin "$@" ;;
  model) keep_model ;;
  bench) bench "$@" ;;
  *) sed -n '2,9s/^# \{0,1\}//p' "$0" && exit 2 ;;
esac
