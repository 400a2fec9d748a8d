//! The tests; each starts the processes that it needs.

use std::env;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::time::Duration;

use nix::unistd::geteuid;
use tickpong_hostio::hosts::Hosts;

use crate::Test;
use crate::roles::{REFUSED, command, command_of, first_line};

pub(crate) const ALL: [Test; 8] = [
    ("datagrams_pass_between_namespaces", || datagrams_pass(Hosts::Namespaces)),
    ("datagrams_pass_between_user_namespaces", || datagrams_pass(Hosts::UserNamespaces)),
    ("datagrams_pass_on_loopback", || datagrams_pass(Hosts::Loopback)),
    ("a_user_makes_namespaces_or_is_told_why_not", a_user_makes_namespaces_or_is_told_why_not),
    ("the_best_hosts_are_chosen", the_best_hosts_are_chosen),
    ("nothing_outlives_namespaces", || nothing_outlives(Hosts::Namespaces)),
    ("nothing_outlives_user_namespaces", || nothing_outlives(Hosts::UserNamespaces)),
    ("nothing_outlives_loopback", || nothing_outlives(Hosts::Loopback)),
];

fn datagrams_pass(kind: Hosts) {
    let named = named_namespaces();
    let said = play(&format!("exchange {kind}"), None);
    skip_if_refused(&said);
    assert_eq!(named_namespaces(), named);
}

fn a_user_makes_namespaces_or_is_told_why_not() {
    let direct = play(&format!("exchange {}", Hosts::Namespaces), Some(NOBODY));
    assert!(direct.starts_with(REFUSED) && direct.contains("not permitted"), "{direct}");
    skip_if_refused(&play(&format!("exchange {}", Hosts::UserNamespaces), Some(NOBODY)));
}

fn the_best_hosts_are_chosen() {
    for user in [None, Some(NOBODY)] {
        let said = play("choose", user);
        let (kind, refused) = said.split_once('\n').unwrap();
        let kind: Hosts = kind.parse().unwrap();
        let better = Hosts::ALL.iter().take_while(|&&other| other != kind).count();
        assert_eq!(refused.lines().count(), better, "{said}");
        if kind == Hosts::Loopback {
            skip_if_refused(&format!("{REFUSED}{refused}"));
        }
    }
}

/// A mother that is killed takes her child on the reflector's host along, and leaves no namespace behind.
#[expect(clippy::disallowed_methods, reason = "a death is waited for, not measured")]
fn nothing_outlives(kind: Hosts) {
    let named = named_namespaces();
    let mut mother = command(&format!("mother {kind}")).spawn().unwrap();
    let said = first_line(mother.stdout.take().unwrap());
    if skip_if_refused(&said) {
        mother.wait().unwrap();
        return;
    }
    let child: u32 = said.parse().unwrap();
    assert!(lives(child), "the child dies too early");
    mother.kill().unwrap();
    mother.wait().unwrap();
    let dead = (0..500).any(|_| {
        std::thread::sleep(Duration::from_millis(10));
        !lives(child)
    });
    assert!(dead, "process {child} outlives its parent");
    assert_eq!(named_namespaces(), named);
}

/// Plays a role to its end; what it said.
fn play(role: &str, user: Option<u32>) -> String {
    let program = Copy::make();
    let mut command = command_of(&program.0, role);
    if let Some(user) = user.filter(|_| geteuid().is_root()) {
        // Dropping root's user number drops its supplementary groups, too.
        command.uid(user).gid(user);
    }
    let output = command.output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{role}: {said}{}", String::from_utf8_lossy(&output.stderr));
    said
}

/// Whether the machine refused, which is no failure unless `TICKPONG_REQUIRE_NET=1` says that it has to let us.
fn skip_if_refused(said: &str) -> bool {
    let refused = said.starts_with(REFUSED);
    if refused {
        println!("skipped: {said}");
        assert!(env::var("TICKPONG_REQUIRE_NET").as_deref() != Ok("1"), "TICKPONG_REQUIRE_NET=1, but {said}");
    }
    refused
}

/// Whether the process is there, and not a zombie that nobody has fetched yet.
fn lives(process: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    stat.rsplit_once(')').is_some_and(|(_, rest)| !rest.trim_start().starts_with(['Z', 'X']))
}

/// What `ip netns` would list.
fn named_namespaces() -> usize {
    fs::read_dir("/run/netns").map_or(0, Iterator::count)
}

/// This program where anybody may run it: its own folder may be root's alone.
struct Copy(PathBuf);

impl Copy {
    fn make() -> Self {
        let path = env::temp_dir().join(format!("tickpong-hostio-test-{}", std::process::id()));
        fs::copy(env::current_exe().unwrap(), &path).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
        Self(path)
    }
}

impl Drop for Copy {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// A user without any privilege.
const NOBODY: u32 = 65_534;
