//! The rules of this repository that no compiler holds.
//!
//! Every check is a function of data, so that each can be shown to fail; one test a rule then feeds it the repository.
#![forbid(unsafe_code)]

mod docs;
mod findings;
mod layers;
mod names;
mod ratchets;
mod repository;
mod source;
