//! `tickpong disclose`: what this host is and how it is set, or how two such disclosures differ.

use std::fs::File;
use std::io::Write;
use std::path::Path;

use anyhow::{Context, bail};
use tickpong_record::{HostFacts, RunDirectory};
use tickpong_report::Compared;

use crate::arguments::{DiscloseArguments, Format};
use crate::{exit, output};

pub(crate) fn run(arguments: &DiscloseArguments) -> anyhow::Result<u8> {
    if let [first, second] = &arguments.diff[..] {
        return compare(first, second, arguments.format);
    }
    let host = tickpong_runner::disclosure(arguments.interface.as_deref());
    if let Some(path) = &arguments.output {
        // As with runs: nothing on disk is replaced.
        let file = File::create_new(path).with_context(|| format!("create {}", path.display()));
        file.and_then(|mut file| Ok(file.write_all(tickpong_report::host_json(&host).as_bytes())?))?;
    }
    output::result(&match arguments.format {
        Format::Json => tickpong_report::host_json(&host),
        Format::Text => tickpong_report::host(&host, output::style()),
    })?;
    Ok(exit::OK)
}

/// The disclosures of a run directory, or of one host.
enum Disclosed {
    Run(Box<HostFacts>, Option<Box<HostFacts>>),
    Host(Box<HostFacts>),
}

impl Disclosed {
    fn read(path: &Path) -> anyhow::Result<Self> {
        if path.is_dir() {
            let run = RunDirectory::read(path)?;
            return Ok(Self::Run(Box::new(run.pinger), run.reflector.map(Box::new)));
        }
        Ok(Self::Host(Box::new(HostFacts::read(path)?)))
    }
}

fn compare(first: &Path, second: &Path, format: Format) -> anyhow::Result<u8> {
    let (one, other) = (Disclosed::read(first)?, Disclosed::read(second)?);
    let compared = match (&one, &other) {
        (Disclosed::Host(first), Disclosed::Host(second)) => {
            vec![Compared { end: "", first: Some(first), second: Some(second) }]
        }
        (Disclosed::Run(first, first_reflector), Disclosed::Run(second, second_reflector)) => vec![
            Compared { end: "pinger", first: Some(first), second: Some(second) },
            Compared { end: "reflector", first: first_reflector.as_deref(), second: second_reflector.as_deref() },
        ],
        (Disclosed::Host(_), Disclosed::Run(..)) | (Disclosed::Run(..), Disclosed::Host(_)) => bail!(
            "compare {} with {}: want two run directories, or two files of one host each",
            first.display(),
            second.display()
        ),
    };
    output::result(&match format {
        Format::Json => tickpong_report::differences_json(&compared),
        Format::Text => tickpong_report::differences(&compared, output::style()),
    })?;
    Ok(if compared.iter().any(Compared::must_match_differs) { exit::NOT_COMPARABLE } else { exit::OK })
}
