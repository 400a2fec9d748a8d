//! Keeps addresses, identities and secrets out of command lines that are otherwise worth telling.

use std::net::{Ipv4Addr, Ipv6Addr};

/// The argument with every address and UUID replaced, and the value of a secret withheld.
pub(super) fn argument(argument: &str) -> String {
    if let Some((name, _)) = argument.split_once('=').filter(|(name, _)| is_secret(name)) {
        return format!("{name}=<withheld>");
    }
    let mut out = String::with_capacity(argument.len());
    // Split where no address goes on, each separator kept at the end of its piece.
    for piece in argument.split_inclusive(['=', ',', '/', '@', '[', ']', ' ', ';', '%']) {
        let word = piece.trim_end_matches(['=', ',', '/', '@', '[', ']', ' ', ';', '%']);
        out.push_str(&word_of(word));
        out.push_str(&piece[word.len()..]);
    }
    out
}

fn word_of(word: &str) -> String {
    if is_v6(word) || is_mac(word) {
        return "<address>".to_owned();
    }
    if is_uuid(word) {
        return "<uuid>".to_owned();
    }
    // As in the kernel's ifname=eth0:02:…
    if let Some((name, mac)) = word.split_once(':').filter(|(_, mac)| is_mac(mac)) {
        return format!("{name}:{}", word_of(mac));
    }
    // An IPv4 address may have a port behind it; the kernel's ip= has several, colons between.
    let parts = word.split(':').map(|part| if part.parse::<Ipv4Addr>().is_ok() { "<address>" } else { part });
    parts.collect::<Vec<_>>().join(":")
}

/// Whether an option of this name holds what nobody should read. A file's name is not, even a key file's.
fn is_secret(name: &str) -> bool {
    const SECRETS: [&str; 7] = ["apikey", "credential", "passphrase", "passwd", "password", "secret", "token"];
    let name = name.to_ascii_lowercase();
    let told = SECRETS.iter().any(|word| name.contains(word));
    told || name.ends_with("_key") || name == "--key"
}

fn is_v6(word: &str) -> bool {
    word.parse::<Ipv6Addr>().is_ok()
}

/// Six pairs of hexadecimal digits, or seven as PXE writes them (`BOOTIF=01-…`).
fn is_mac(word: &str) -> bool {
    [':', '-'].iter().any(|&separator| {
        let pairs: Vec<&str> = word.split(separator).collect();
        matches!(pairs.len(), 6 | 7) && pairs.iter().all(|pair| pair.len() == 2 && is_hex(pair))
    })
}

fn is_uuid(word: &str) -> bool {
    let groups: Vec<&str> = word.split('-').collect();
    let lengths: Vec<usize> = groups.iter().map(|group| group.len()).collect();
    lengths == [8, 4, 4, 4, 12] && groups.iter().all(|group| is_hex(group))
}

fn is_hex(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_tells_a_host_is_replaced_and_the_rest_kept() {
        for (given, want) in [
            ("isolcpus=domain,managed_irq,2-5", "isolcpus=domain,managed_irq,2-5"),
            ("pci=00:1f.0", "pci=00:1f.0"),
            ("192.0.2.7", "<address>"),
            ("--listen=192.0.2.7:7410", "--listen=<address>:7410"),
            ("[2001:db8::1]:7410", "[<address>]:7410"),
            ("2001:db8::1", "<address>"),
            ("fe80::1%eth0", "<address>%eth0"),
            ("ip=192.0.2.7::192.0.2.1:255.255.255.0::eth0:off", "ip=<address>::<address>:<address>::eth0:off"),
            ("nfsroot=192.0.2.1:/srv/root", "nfsroot=<address>:/srv/root"),
            ("BOOTIF=01-02-00-00-00-77-01", "BOOTIF=<address>"),
            ("ifname=eth0:02:00:00:00:77:01", "ifname=eth0:<address>"),
            ("root=UUID=0a0a0a0a-1b1b-2c2c-3d3d-4e4e4e4e4e4e", "root=UUID=<uuid>"),
            ("TICKPONG_KEY=abc", "TICKPONG_KEY=<withheld>"),
            ("--password=abc", "--password=<withheld>"),
            ("--key-file=/etc/tickpong.key", "--key-file=/etc/tickpong.key"),
        ] {
            assert_eq!(argument(given), want);
        }
    }
}
