//! The files and packages of this repository.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// Where the workspace is.
pub(crate) fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).expect("crates/tidy lies two folders below the root").to_owned()
}

/// Every file that belongs to the repository, or would once it is added, relative to the root and in order.
pub(crate) fn files() -> Vec<String> {
    let root = root();
    let mut files = listed_by_git(&root).unwrap_or_else(|| {
        let mut walked = Vec::new();
        walk(&root, &root, &mut walked);
        walked
    });
    // A file deleted but not yet committed is listed still.
    files.retain(|file| root.join(file).is_file());
    files.sort();
    files
}

/// The text of `file`, or `None` where it is no text.
pub(crate) fn text(file: &str) -> Option<String> {
    let bytes = fs::read(root().join(file)).unwrap_or_else(|error| panic!("read {file}: {error}"));
    String::from_utf8(bytes).ok()
}

/// Whether the name of `file` ends in this extension, given without its dot.
pub(crate) fn has_extension(file: &str, extension: &str) -> bool {
    Path::new(file).extension().is_some_and(|own| own == extension)
}

/// `None` where there is no git, or no repository: in an unpacked archive, say.
fn listed_by_git(root: &Path) -> Option<Vec<String>> {
    let arguments = ["ls-files", "-z", "--cached", "--others", "--exclude-standard"];
    let output = Command::new("git").arg("-C").arg(root).args(arguments).output().ok()?;
    let list = output.status.success().then(|| String::from_utf8(output.stdout).ok())??;
    let files: Vec<String> = list.split_terminator('\0').map(str::to_owned).collect();
    (!files.is_empty()).then_some(files)
}

fn walk(root: &Path, folder: &Path, files: &mut Vec<String>) {
    for entry in fs::read_dir(folder).unwrap_or_else(|error| panic!("list {}: {error}", folder.display())) {
        let path = entry.expect("a folder's entries can be read").path();
        let relative = path.strip_prefix(root).expect("the walk stays below the root");
        let name = relative.to_str().expect("file names are UTF-8").to_owned();
        if !path.is_dir() {
            files.push(name);
        } else if !matches!(name.as_str(), ".git" | "target" | "results") {
            walk(root, &path, files);
        }
    }
}

/// One package of the workspace, as its manifest describes it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Package {
    /// `tickpong-units`.
    pub(crate) name: String,
    /// Relative to the root: `crates/units`.
    pub(crate) folder: String,
    /// The last words of its `[dependencies]` on other packages of the workspace: `units`.
    pub(crate) depends_on: Vec<String>,
    /// The manifest's text.
    pub(crate) manifest: String,
}

impl Package {
    /// What the package is called among ours: `units`.
    pub(crate) fn word(&self) -> &str {
        self.name.strip_prefix("tickpong-").unwrap_or(&self.name)
    }
}

/// The packages of the workspace, in the order of their names.
pub(crate) fn packages() -> Vec<Package> {
    let root = root();
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let arguments = ["metadata", "--no-deps", "--offline", "--format-version", "1"];
    let output = Command::new(cargo).current_dir(&root).args(arguments).output().expect("cargo starts");
    assert!(output.status.success(), "cargo metadata: {}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("cargo metadata prints JSON");
    let listed = metadata["packages"].as_array().expect("cargo metadata lists packages");
    let mut packages: Vec<Package> = listed.iter().map(|package| described(&root, package)).collect();
    packages.sort_by(|a, b| a.name.cmp(&b.name));
    packages
}

fn described(root: &Path, package: &Value) -> Package {
    let string = |value: &Value| value.as_str().expect("cargo metadata: a string").to_owned();
    let manifest_path = PathBuf::from(string(&package["manifest_path"]));
    let folder = manifest_path.parent().and_then(|folder| folder.strip_prefix(root).ok());
    let dependencies = package["dependencies"].as_array().expect("cargo metadata: a list");
    // A development dependency has the kind "dev", one of a build script "build"; null is an ordinary one.
    let ordinary = dependencies.iter().filter(|dependency| dependency["kind"].is_null());
    let ours = ordinary.filter_map(|d| string(&d["name"]).strip_prefix("tickpong-").map(str::to_owned));
    Package {
        name: string(&package["name"]),
        folder: folder.and_then(Path::to_str).expect("packages lie below the root").to_owned(),
        depends_on: ours.collect(),
        manifest: fs::read_to_string(&manifest_path).expect("cargo has just read it"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_walk_finds_what_git_lists() {
        let mut walked = Vec::new();
        walk(&root(), &root(), &mut walked);
        for file in ["Cargo.toml", "crates/tidy/tests/it/main.rs"] {
            assert!(files().iter().any(|listed| listed == file), "listed: {file}");
            assert!(walked.iter().any(|found| found == file), "walked: {file}");
        }
        assert!(!walked.iter().any(|found| found.starts_with("target/")));
    }

    #[test]
    fn no_repository_is_no_list() {
        assert_eq!(listed_by_git(Path::new("/")), None);
    }

    #[test]
    fn development_dependencies_are_no_edges() {
        let tidy = packages().into_iter().find(|package| package.word() == "tidy").expect("this package");
        assert_eq!(tidy.folder, "crates/tidy");
        assert!(tidy.depends_on.is_empty());
        assert!(tidy.manifest.contains("[dev-dependencies]"));
    }
}
