//! The rules of this repository that no compiler holds, as tests; ships nothing.
//!
//! Owns: the table of layers, the banned names, the ratchets of size, the links of the documents.
//! Does not own: what rustfmt, clippy and rustdoc already check.
#![forbid(unsafe_code)]
