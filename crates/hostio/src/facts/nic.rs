//! The adapter: by netlink and ioctl, which tell of the calling thread's network namespace; from /sys only what is not of a namespace, or
//! once it is known that /sys shows this one.

mod ethtool;
mod link;
mod module;
mod pci;
mod queues;

use std::io;
use std::net::UdpSocket;
use std::os::fd::{AsRawFd, OwnedFd};

use super::{FactValue, HostFacts};

/// Facts of one device, in the calling thread's network namespace.
pub(super) fn read(facts: &mut HostFacts, interface: Option<&str>) {
    let device = interface.ok_or_else(|| "no interface was named".to_owned()).and_then(Device::open);
    let name = device.as_ref().map(|device| device.name.as_str()).map_err(String::as_str);
    facts.put("nic.name", name.map(|name| FactValue::Text(name.to_owned())).map_err(str::to_owned));
    let driver = device.as_ref().map_err(Clone::clone);
    let driver = driver.and_then(|device| device.driver().map_err(|error| format!("ETHTOOL_GDRVINFO: {error}")));
    let mut text = |key: &str, of: fn(&DriverInfo) -> &[u8]| {
        let value = driver.as_ref().map_err(Clone::clone).map(|info| c_text(of(info)));
        facts.put(key, value.and_then(|text| said(&text)));
    };
    text("nic.bus", |info| &info.bus_info);
    text("nic.driver", |info| &info.driver);
    text("nic.driver_version", |info| &info.version);
    text("nic.firmware", |info| &info.firmware_version);
    let index = link::read(facts, name);
    ethtool::read(facts, name);
    queues::read(facts, name, index);
    let bus = driver.map(|info| c_text(&info.bus_info));
    pci::read(facts, name, bus);
}

/// A device of the calling thread's network namespace.
#[derive(Debug)]
struct Device {
    name: String,
    /// Any socket will do: it stands for the namespace.
    socket: OwnedFd,
}

impl Device {
    fn open(name: &str) -> Result<Self, String> {
        // The kernel wants its zero byte within the field.
        if name.is_empty() || name.len() >= libc::IFNAMSIZ {
            return Err(format!("`{name}` is no name of a device"));
        }
        // An unspecified address asks for no device to be up.
        let socket = UdpSocket::bind("0.0.0.0:0").or_else(|_| UdpSocket::bind("[::]:0"));
        let socket = socket.map_err(|error| format!("open a socket to ask about {name}: {error}"))?;
        Ok(Self { name: name.to_owned(), socket: socket.into() })
    }

    fn driver(&self) -> io::Result<DriverInfo> {
        let mut info = DriverInfo {
            command: ETHTOOL_GDRVINFO,
            driver: [0; 32],
            version: [0; 32],
            firmware_version: [0; 32],
            bus_info: [0; 32],
            rest: [0; 64],
        };
        self.ethtool((&raw mut info).cast())?;
        Ok(info)
    }

    /// Hands an ethtool command to the driver; `command` points to the struct that the command's first field names.
    fn ethtool(&self, command: *mut libc::c_char) -> io::Result<()> {
        let mut request = self.request();
        request.ifr_ifru.ifru_data = command;
        #[expect(unsafe_code, reason = "nix has no wrapper")]
        // SAFETY: SIOCETHTOOL follows `ifru_data` to a command struct and writes the answer into it. The caller passes a local that
        // outlives the call, with the layout that its own first field stands for, see linux/ethtool.h.
        let status = unsafe { libc::ioctl(self.socket.as_raw_fd(), SIOCETHTOOL, &raw mut request) };
        if status < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    fn request(&self) -> libc::ifreq {
        let mut name = [0; libc::IFNAMSIZ];
        for (to, from) in name.iter_mut().zip(self.name.bytes()) {
            *to = libc::c_char::from_ne_bytes([from]);
        }
        libc::ifreq { ifr_name: name, ifr_ifru: libc::__c_anonymous_ifr_ifru { ifru_data: std::ptr::null_mut() } }
    }
}

/// `struct ethtool_drvinfo`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
struct DriverInfo {
    command: u32,
    driver: [u8; 32],
    version: [u8; 32],
    firmware_version: [u8; 32],
    bus_info: [u8; 32],
    /// `erom_version`, reserved bytes and counts of tables.
    rest: [u8; 64],
}

/// The text before the first zero byte.
fn c_text(bytes: &[u8]) -> String {
    let text = bytes.split(|&byte| byte == 0).next().unwrap_or_default();
    String::from_utf8_lossy(text).trim().to_owned()
}

fn said(text: &str) -> Result<FactValue, String> {
    match text {
        "" | "N/A" => Err("the driver does not say".to_owned()),
        _ => Ok(FactValue::Text(text.to_owned())),
    }
}

// From linux/sockios.h, in the type that ioctl(2) takes on this C library.
const SIOCETHTOOL: libc::Ioctl = 0x8946;
const ETHTOOL_GDRVINFO: u32 = 0x03;

#[cfg(test)]
mod tests {
    use std::mem::size_of;

    use super::*;

    #[test]
    fn the_struct_is_the_kernels() {
        // From linux/ethtool.h, compiled.
        assert_eq!(size_of::<DriverInfo>(), 196);
    }

    #[test]
    fn a_device_that_is_none_is_absent_with_a_reason() {
        for name in ["tp-nowhere", "", "a-name-that-is-too-long"] {
            let mut facts = HostFacts::default();
            read(&mut facts, Some(name));
            assert!(facts.absent.contains_key("nic.mtu"), "{name}: {facts:?}");
        }
    }

    #[test]
    fn a_drivers_words_end_at_the_zero() {
        assert_eq!(c_text(b"veth\0\0junk"), "veth");
        assert_eq!(c_text(&[b'a'; 32]).len(), 32);
        assert_eq!(said("N/A"), Err("the driver does not say".into()));
        assert_eq!(said("1.0"), Ok(FactValue::Text("1.0".into())));
    }
}
