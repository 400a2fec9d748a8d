//! `tickpong compare`.

use anyhow::bail;
use tickpong_lab::directory::read_result;
use tickpong_record::RunDirectory;
use tickpong_report::{compare_runs, compare_suites};

use crate::arguments::CompareArguments;
use crate::{exit, output};

pub(crate) fn run(arguments: &CompareArguments) -> anyhow::Result<u8> {
    let CompareArguments { a, b } = arguments;
    let text = match (read_result(a)?, read_result(b)?) {
        (Some(a), Some(b)) => compare_suites(&a, &b, output::style()),
        (None, None) => compare_runs(&RunDirectory::read(a)?, &RunDirectory::read(b)?, output::style()),
        _ => bail!("compare {} with {}: one is a run, the other a suite", a.display(), b.display()),
    };
    output::result(&text)?;
    Ok(exit::OK)
}
