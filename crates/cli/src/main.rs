//! tickpong: a benchmark of the host network stack under a market-data workload.
//!
//! Owns: arguments, progress, exit codes.
//! Does not own: anything else.
#![forbid(unsafe_code)]

mod arguments;
mod compare;
mod demo;
mod disclose;
mod exit;
mod output;
mod ping;
mod progress;
mod reflect;
mod report;
mod stop;
mod suite;

use std::process::ExitCode;

use arguments::{Command, parse};

fn main() -> ExitCode {
    let command = parse();
    let done = match command {
        Command::Demo(arguments) => demo::run(&arguments),
        Command::Reflect(arguments) => reflect::run(&arguments),
        Command::Ping(arguments) => ping::run(&arguments),
        Command::Suite(arguments) => suite::run(&arguments),
        Command::Sweep(arguments) => suite::sweep(&arguments),
        Command::Report(arguments) => report::run(&arguments),
        Command::Compare(arguments) => compare::run(&arguments),
        Command::Disclose(arguments) => disclose::run(&arguments),
        Command::Completions { shell } => output::completions(shell),
        Command::Man => output::man(),
    };
    exit::code(done)
}
