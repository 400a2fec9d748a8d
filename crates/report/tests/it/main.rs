//! Pages of runs, as a program's user sees them.

mod build;
mod disclosures;
mod laws;
mod pages;
mod suites;
