//! Two hosts, made for real.
//!
//! The usual harness runs every test on a second thread, where no hosts can be made: a namespace takes one thread along, not the
//! process. So this binary is its own harness. `main` plays a role when one is asked for, alone in a fresh process, and else runs
//! tests that start such processes. It speaks as much of the usual harness's language as cargo and nextest ask of it.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test, which clippy.toml exempts only under the usual harness"
)]

mod roles;
mod tests;

use std::env;
use std::panic;
use std::process::ExitCode;

/// A test, and what it is called.
type Test = (&'static str, fn());

fn main() -> ExitCode {
    if let Ok(role) = env::var(roles::ROLE) {
        roles::play(&role);
        return ExitCode::SUCCESS;
    }
    let arguments: Vec<String> = env::args().skip(1).collect();
    let has = |flag: &str| arguments.iter().any(|argument| argument == flag);
    let chosen = if has("--ignored") { Vec::new() } else { choose(&arguments, has("--exact")) };
    if has("--list") {
        for (name, _) in &chosen {
            println!("{name}: test");
        }
        return ExitCode::SUCCESS;
    }
    let left_out = tests::ALL.len() - chosen.len();
    println!("\nrunning {} tests", chosen.len());
    let failed = chosen.iter().filter(|test| !passes(test)).count();
    let (word, passed) = (if failed == 0 { "ok" } else { "FAILED" }, chosen.len() - failed);
    println!(
        "\ntest result: {word}. {passed} passed; {failed} failed; 0 ignored; 0 measured; {left_out} filtered out\n"
    );
    ExitCode::from(u8::from(failed != 0))
}

/// The tests that the arguments name, or all where they name none.
fn choose(arguments: &[String], exact: bool) -> Vec<Test> {
    let mut filters = Vec::new();
    let mut skipped = Vec::new();
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--skip" => skipped.extend(arguments.next()),
            "--format" | "--test-threads" | "--color" | "-Z" => drop(arguments.next()),
            flag if flag.starts_with('-') => {}
            _ => filters.push(argument),
        }
    }
    let matches = |name: &str, filter: &String| if exact { name == filter } else { name.contains(filter.as_str()) };
    let is_chosen = |(name, _): &Test| {
        let named = filters.is_empty() || filters.iter().any(|filter| matches(name, filter));
        named && !skipped.iter().any(|filter| matches(name, filter))
    };
    tests::ALL.into_iter().filter(is_chosen).collect()
}

fn passes(&(name, run): &Test) -> bool {
    let passed = panic::catch_unwind(run).is_ok();
    println!("test {name} ... {}", if passed { "ok" } else { "FAILED" });
    passed
}
