//! The memory modules in the firmware's table; serial numbers and asset tags are passed over.

/// Size, kind and speed of every memory module, in the table's order.
pub(super) fn dimms(table: &[u8]) -> Vec<String> {
    let mut rest = table;
    let mut dimms = Vec::new();
    // A structure: type, length, handle, fields; then its strings, ended by two zero bytes.
    while let [kind, length, ..] = *rest {
        let length = usize::from(length);
        let Some((fields, strings)) = rest.split_at_checked(length).filter(|_| length >= 4) else { break };
        if kind == MEMORY_DEVICE {
            dimms.extend(dimm(fields));
        }
        let end = strings.windows(2).position(|pair| pair == [0, 0]).map(|at| at + 2);
        let Some(next) = end.and_then(|end| strings.get(end..)) else { break };
        rest = next;
    }
    dimms
}

/// A module, or none where the slot is empty. Offsets are those of the SMBIOS specification, 7.18.
fn dimm(fields: &[u8]) -> Option<String> {
    let word = |at: usize| fields.get(at..at + 2).map(|bytes| u16::from_le_bytes([bytes[0], bytes[1]]));
    let size = match word(0x0c)? {
        0 => return None,
        0xffff => "unknown size".to_owned(),
        0x7fff => {
            let mebibytes = fields.get(0x1c..0x20).and_then(|bytes| bytes.try_into().ok()).map(u32::from_le_bytes)?;
            format!("{mebibytes} MiB")
        }
        kibibytes if kibibytes & 0x8000 != 0 => format!("{} KiB", kibibytes & 0x7fff),
        mebibytes => format!("{mebibytes} MiB"),
    };
    let kind = match fields.get(0x12)? {
        0x18 => "DDR3",
        0x1a => "DDR4",
        0x1e => "LPDDR4",
        0x22 => "DDR5",
        0x23 => "LPDDR5",
        _ => "memory",
    };
    // The speed that is set; older tables tell only what the module can.
    let speed = word(0x20).filter(|&speed| speed > 0).or_else(|| word(0x15)).filter(|&speed| speed > 0);
    Some(speed.map_or_else(|| format!("{size} {kind}"), |speed| format!("{size} {kind} {speed} MT/s")))
}

const MEMORY_DEVICE: u8 = 17;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_are_told_and_serial_numbers_are_not() {
        let mut module = vec![0_u8; 0x22];
        (module[0], module[1], module[0x12]) = (MEMORY_DEVICE, 0x22, 0x1a);
        module[0x0c..0x0e].copy_from_slice(&0x4000_u16.to_le_bytes());
        module[0x15..0x17].copy_from_slice(&3_200_u16.to_le_bytes());
        module[0x20..0x22].copy_from_slice(&2_933_u16.to_le_bytes());
        let strings = b"SERIAL-1\0\0";
        let bios = [&[0, 4, 0, 0][..], &[0, 0]].concat();
        let mut empty = module.clone();
        empty[0x0c..0x0e].copy_from_slice(&[0, 0]);
        let table = [&bios[..], &module, strings, &empty, &[0, 0], &module, strings].concat();
        assert_eq!(dimms(&table), ["16384 MiB DDR4 2933 MT/s", "16384 MiB DDR4 2933 MT/s"]);
    }

    #[test]
    fn a_table_cut_short_ends_the_list() {
        assert_eq!(dimms(&[]), <[String; 0]>::default());
        assert_eq!(dimms(&[MEMORY_DEVICE, 2, 0]), <[String; 0]>::default());
        assert_eq!(dimms(&[MEMORY_DEVICE, 0x22, 0, 0]), <[String; 0]>::default());
        assert_eq!(dimms(&[MEMORY_DEVICE, 6, 0, 0, 1, 1, 7]), <[String; 0]>::default());
    }
}
