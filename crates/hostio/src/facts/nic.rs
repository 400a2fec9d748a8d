//! The adapter, asked by ioctl: /sys/class/net shows the network namespace of the one who mounted it, an ioctl the caller's.

use std::io;
use std::net::UdpSocket;
use std::os::fd::{AsRawFd, OwnedFd};

use super::{FactValue, HostFacts};

/// Facts of one device, in the calling thread's network namespace.
pub(super) fn read(facts: &mut HostFacts, interface: Option<&str>) {
    const KEYS: [&str; 7] =
        ["nic.bus", "nic.driver", "nic.driver_version", "nic.firmware", "nic.mtu", "nic.name", "nic.speed_mbps"];
    let device = interface.ok_or_else(|| "no interface was named".to_owned()).and_then(Device::open);
    let device = match device {
        Ok(device) => device,
        Err(reason) => return KEYS.iter().for_each(|key| facts.put(key, Err(reason.clone()))),
    };
    facts.put("nic.name", Ok(FactValue::Text(device.name.clone())));
    facts.put("nic.mtu", device.mtu().map(FactValue::Integer).map_err(|error| format!("SIOCGIFMTU: {error}")));
    facts.put("nic.speed_mbps", device.speed());
    let driver = device.driver().map_err(|error| format!("ETHTOOL_GDRVINFO: {error}"));
    let mut text = |key: &str, of: fn(&DriverInfo) -> &[u8]| {
        let value = driver.as_ref().map_err(Clone::clone).map(|info| c_text(of(info)));
        facts.put(key, value.and_then(|text| said(&text)));
    };
    text("nic.bus", |info| &info.bus_info);
    text("nic.driver", |info| &info.driver);
    text("nic.driver_version", |info| &info.version);
    text("nic.firmware", |info| &info.firmware_version);
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

    fn mtu(&self) -> io::Result<i64> {
        let mut request = self.request();
        #[expect(unsafe_code, reason = "nix has no wrapper")]
        // SAFETY: SIOCGIFMTU reads the name and writes the MTU of the ifreq that it is given, netdevice(7): `request` is one,
        // a local that outlives the call.
        let status = unsafe { libc::ioctl(self.socket.as_raw_fd(), SIOCGIFMTU, &raw mut request) };
        if status < 0 {
            return Err(io::Error::last_os_error());
        }
        #[expect(unsafe_code, reason = "the answer is in a union")]
        // SAFETY: the call succeeded, so the kernel wrote this field; any bits are a number.
        let mtu = unsafe { request.ifr_ifru.ifru_mtu };
        Ok(mtu.into())
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

    fn speed(&self) -> Result<FactValue, String> {
        let mut settings = Settings { command: ETHTOOL_GSET, ..Settings::default() };
        self.ethtool((&raw mut settings).cast()).map_err(|error| format!("ETHTOOL_GSET: {error}"))?;
        match settings.mbps() {
            0 | u32::MAX => Err("unknown to the driver, as while the link is down".to_owned()),
            mbps => Ok(FactValue::Integer(mbps.into())),
        }
    }

    /// Hands an ethtool command to the driver; `command` points to the struct that the command's first field names.
    fn ethtool(&self, command: *mut libc::c_char) -> io::Result<()> {
        let mut request = self.request();
        request.ifr_ifru.ifru_data = command;
        #[expect(unsafe_code, reason = "nix has no wrapper")]
        // SAFETY: SIOCETHTOOL follows `ifru_data` to a command struct and writes the answer into it. Both callers pass a local
        // that outlives the call, with the layout that its own first field stands for, see linux/ethtool.h.
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

/// `struct ethtool_cmd`. Its successor takes two calls to learn a size first; the kernel fills this one from it.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
struct Settings {
    command: u32,
    supported: u32,
    advertising: u32,
    speed: u16,
    /// Duplex, port, addresses, transceiver, negotiation and two tables.
    middle: [u8; 14],
    speed_high: u16,
    /// Pair swapping, the partner's modes, reserved words.
    end: [u8; 14],
}

impl Settings {
    fn mbps(&self) -> u32 {
        u32::from(self.speed_high) << 16 | u32::from(self.speed)
    }
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

// From linux/sockios.h, in the type that ioctl(2) takes on this C library: libc has one of them, in another type.
const SIOCGIFMTU: libc::Ioctl = 0x8921;
const SIOCETHTOOL: libc::Ioctl = 0x8946;
const ETHTOOL_GSET: u32 = 0x01;
const ETHTOOL_GDRVINFO: u32 = 0x03;

#[cfg(test)]
mod tests {
    use std::mem::{offset_of, size_of};

    use super::*;

    #[test]
    fn the_structs_are_the_kernels() {
        // From linux/ethtool.h, compiled.
        assert_eq!(size_of::<DriverInfo>(), 196);
        assert_eq!(size_of::<Settings>(), 44);
        assert_eq!((offset_of!(Settings, speed), offset_of!(Settings, speed_high)), (12, 28));
        let fast = Settings { speed: 0x86a0, speed_high: 1, ..Settings::default() };
        assert_eq!(fast.mbps(), 100_000);
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
